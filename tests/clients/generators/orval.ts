// Books twice with the client that orval made of the description.
import { createBooking } from "./made-by-orval";
import { authorization, body, report } from "./booking";

const headers = { Authorization: authorization };
const made = await createBooking(body, {}, { headers });
const refused = await createBooking(body, {}, { headers });
if (made.status !== 201 || refused.status !== 409) throw made;
report(made.status, made.data.data, refused.status, refused.data.code);
