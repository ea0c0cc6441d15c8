// Follows the changes of its own bookings, with a new feed after each, and prints what it read.
import { Client, isError } from "scheduling-client";

const { options, project_id, start, cursor: first } = JSON.parse(process.argv[2]);
const client = new Client(options);
const customer = { name: "Marty McFly", email: "marty@example.com" };
const time = { start: new Date(start), end: new Date(Date.parse(start) + 1_800_000) };
const body = { project_id, customer, ...time };
const booking = await client.bookings.create(body);
await client.bookings.cancel(booking.id);
await client.bookings.create(body);

const read = [];
let cursor = first;
for (let isAtEnd = false; !isAtEnd; ) {
  isAtEnd = true;
  const feed = client.changes.follow({ cursor, types: ["booking"], untilNow: true });
  for await (const change of feed) {
    read.push(change);
    cursor = change.cursor;
    isAtEnd = false;
    break;
  }
}
const name = (value) => value.constructor.name;
const said = { changes: read.map(({ id, action, cursor: own }) => [id, action, own]) };
said.types = [read[0].at, read[0].object.created_at, read[0].object.event.start].map(name);
try {
  await client.bookings.create(body);
} catch (error) {
  if (!isError(error, "slot_taken")) throw error;
  said.code = error.code;
  said.alternatives = name(error.body.alternatives[0].start);
}
console.log(JSON.stringify(said));
