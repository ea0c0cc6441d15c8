// What each program books, and how it says what came of it.
const [key, resource_id] = process.argv.slice(3);
export const address = process.argv[2];
export const authorization = `Basic ${Buffer.from(`:${key}`).toString("base64")}`;
export const body = {
  resource_id,
  start: "2031-02-04T09:00:00+00:00",
  end: "2031-02-04T10:00:00+00:00",
  what: "Check-up",
  customer: { name: "Marty McFly", email: "marty@example.com" },
};

export function report(
  status: number,
  booking: { state: string },
  refusedStatus: number,
  code: string | null,
): void {
  console.log(JSON.stringify([status, booking.state, refusedStatus, code]));
}
