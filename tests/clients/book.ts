// Books, moves and cancels with the types that openapi-typescript made of the description, and prints
// what came of it.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [address, key, resourceId] = process.argv.slice(2);
const authorization = `Basic ${Buffer.from(`:${key}`).toString("base64")}`;
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: authorization } });

const body: components["schemas"]["BookingBody"] = {
  resource_id: resourceId,
  start: "2031-02-04T09:00:00+00:00",
  end: "2031-02-04T10:00:00+00:00",
  what: "Check-up",
  customer: { name: "Marty McFly", email: "marty@example.com" },
};
const made = await client.POST("/v2/bookings", { body });
const shown = await client.GET("/v2/bookings/{booking_id}", {
  params: { path: { booking_id: made.data!.data.id } },
});
const refused = await client.POST("/v2/bookings", { body });
const moved = await client.POST("/v2/bookings/{booking_id}/reschedule", {
  params: { path: { booking_id: made.data!.data.id } },
  body: { start: "2031-02-04T12:00:00+00:00", end: "2031-02-04T13:00:00+00:00" },
});
const cancelled = await client.PUT("/v2/bookings/{booking_id}/{action}", {
  params: { path: { booking_id: made.data!.data.id, action: "cancel" } },
});
// @ts-expect-error A booking needs a body: this would not compile.
export const withoutBody = () => client.POST("/v2/bookings", {});
const entry: components["schemas"]["BookingAnswer"] | undefined = moved.data;
console.log(
  JSON.stringify({
    made: made.data,
    shown: shown.data,
    moved: entry,
    state: cancelled.data?.data.state,
    statuses: [made, shown, refused, moved, cancelled].map((answer) => answer.response.status),
    code: refused.error?.code,
  }),
);
