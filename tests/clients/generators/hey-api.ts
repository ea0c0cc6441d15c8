// Books twice with the client that hey-api made of the description.
import { createBooking } from "./made-by-hey-api/sdk.gen";
import { client } from "./made-by-hey-api/client.gen";
import type { BookingAnswer } from "./made-by-hey-api/types.gen";
import { address, authorization, body, report } from "./booking";

client.setConfig({ baseUrl: address, headers: { Authorization: authorization } });
const made = await createBooking({ body, throwOnError: true });
const refused = await createBooking({ body });
// 202 has no schema, so the type of the other answers is lost.
const { data } = made.data as BookingAnswer;
report(made.response.status, data, refused.response!.status, refused.error!.code);
