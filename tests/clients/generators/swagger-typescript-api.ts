// Books twice with the client that swagger-typescript-api made of the description.
import { Api } from "./made-by-swagger-typescript-api/Api";
import { address, authorization, body, report } from "./booking";

const api = new Api({ baseUrl: address, baseApiParams: { headers: { Authorization: authorization } } });
const made = await api.v2.createBooking(body);
const refused = await api.v2.createBooking(body).catch((answer) => answer);
report(made.status, made.data.data, refused.status, refused.error.code);
