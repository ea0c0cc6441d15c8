// Each call is an error of the compiler, or this file is one.
import { type Booking, Client, isError, type Operations, webhooks } from "scheduling-client";

declare const client: Client;
declare const time: Date;

export async function wrong(): Promise<void> {
  // @ts-expect-error Without a key.
  new Client({ url: "https://booking.example.com" });
  // @ts-expect-error Without times.
  await client.bookings.create({ project_id: "p", start: 7 });
  // @ts-expect-error A typing mistake.
  await client.projects.create({ name: "Check-up", sluug: "check-up" });
  // @ts-expect-error No state.
  client.bookings.list({ graph: "immediate" });
  // @ts-expect-error No action.
  await client.bookings.apply("b", "postpone");
  // @ts-expect-error Without the part of the path.
  await client.call("GET /v2/schedules/{schedule_id}", {});
  // @ts-expect-error No list.
  client.list("GET /v2/app", {});
  // @ts-expect-error No code.
  isError(null, "taken");
  // @ts-expect-error Without a secret.
  await webhooks.verify("{}", {});
  const call = await webhooks.verify("", {}, "whsec_...");
  // @ts-expect-error A GET has no body.
  console.log(call.state);
  const notified = await webhooks.verify<Booking>("", {}, "whsec_...");
  // @ts-expect-error Event notifications have no change.
  console.log(notified?.state, notified?.change);

  const booking = await client.bookings.create({ project_id: "p", start: time, end: "2026-11-23" });
  const end: number = booking.end.getTime();
  // @ts-expect-error A date.
  const start: string = booking.start;
  const body: Operations["POST /v2/schedules"]["body"] = { name: "Hours" };
  const { data } = await client.call("POST /v2/schedules", { body });
  const made: Date = data.created_at;
  console.log(end, start, made);
}
