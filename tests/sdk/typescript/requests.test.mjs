import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, isError, NetworkError, SchedulingError, VerificationRequired } from "scheduling-client";
import { refusal, serve } from "./scripted_service.mjs";

const PAGE = { status: 502, headers: { "Content-Type": "text/html" }, body: "<h1>Bad gateway</h1>" };

const BOOKING = { id: "b-1", state: "confirmed", created_at: "2026-11-20T09:30:00+0000" };
const BODY = { project_id: "p-1", start: new Date("2026-11-23T09:00:00Z") };
const made = { status: 201, body: { data: BOOKING } };
const keys = (requests) => requests.map(({ headers }) => headers["idempotency-key"]);

/** What a promise is rejected with. */
async function thrown(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("a request has key, app and body, and times become dates", async (t) => {
  const { options, requests } = await serve(t, [made]);
  const client = new Client({ ...options, url: `${options.url}/`, app: "demo" });

  const booking = await client.bookings.create(BODY);

  const [{ method, url, headers, body }] = requests;
  assert.deepEqual(booking, { ...BOOKING, created_at: new Date("2026-11-20T09:30:00Z") });
  assert.deepEqual(
    [method, url, headers.authorization, headers["service-app"], headers["content-type"]],
    ["POST", "/v2/bookings", "Bearer test_api_key_secret", "demo", "application/json"],
  );
  assert.deepEqual(JSON.parse(body), { project_id: "p-1", start: "2026-11-23T09:00:00.000Z" });
  assert.match(headers["idempotency-key"], /^[0-9a-f]{32}$/);
});

test("times are found in lists, in other schemas and with any offset; other texts stay", async (t) => {
  const data = {
    ...BOOKING,
    meta: { start: "2026-11-23T09:00:00+01:00" },
    event: { start: "2026-11-23T09:00:00+01:00", what: "2026-11-23T09:00:00Z" },
    customers: [{ name: "Marty", responded_at: null }, { responded_at: "2026-11-20T09:41:07+0000" }],
  };
  const { options } = await serve(t, [{ body: { data } }]);

  const booking = await new Client(options).bookings.get("b-1");

  assert.deepEqual(booking, {
    ...data,
    created_at: new Date("2026-11-20T09:30:00Z"),
    event: { start: new Date("2026-11-23T08:00:00Z"), what: "2026-11-23T09:00:00Z" },
    customers: [
      { name: "Marty", responded_at: null },
      { responded_at: new Date("2026-11-20T09:41:07Z") },
    ],
  });
});

test("queries take dates and lists, and paths take any text but none that leaves them", async (t) => {
  const { options, requests } = await serve(t, [{ body: { data: BOOKING } }, { body: { data: [] } }]);
  const client = new Client(options);

  await client.bookings.get("a/b?c", { include: ["customers", "event"] });
  const query = { start: new Date("2026-11-23T09:00:00Z"), state: "confirmed", page: undefined };
  await client.bookings.list(query).all();

  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      "/v2/bookings/a%2Fb%3Fc?include=customers%2Cevent",
      "/v2/bookings?start=2026-11-23T09%3A00%3A00.000Z&state=confirmed&cursor=",
    ],
  );
  for (const id of ["", "..", undefined]) {
    assert.equal((await thrown(client.bookings.delete(id))).message, "booking_id must be an id.");
  }
  assert.equal(requests.length, 2);
});

test("the address may end with /v2, and a wrong address or operation is an error at once", async (t) => {
  const { options, requests } = await serve(t, [{ body: { data: BOOKING } }]);
  const client = new Client({ ...options, url: `${options.url}/v2/` });

  await client.bookings.get("a");
  const operation = await thrown(client.call("GET /v2/rooms", {}));

  assert.deepEqual(requests.map(({ url }) => url), ["/v2/bookings/a"]);
  assert.deepEqual([operation.name, operation.message], ["TypeError", "There is no operation GET /v2/rooms."]);
  assert.throws(() => new Client({ ...options, url: "127.0.0.1:8000" }), {
    name: "TypeError",
    message: "The address of the service begins with https:// or http://: 127.0.0.1:8000",
  });
});

test("queries are sent where URLSearchParams has no size: Node.js 18.0, Safari 16", async (t) => {
  const { options, requests } = await serve(t, [{ body: { data: BOOKING } }, { body: { data: BOOKING } }]);
  const size = Object.getOwnPropertyDescriptor(URLSearchParams.prototype, "size");
  t.after(() => Object.defineProperty(URLSearchParams.prototype, "size", size));
  delete URLSearchParams.prototype.size;
  const client = new Client(options);

  await client.bookings.get("b-1", { include: "event" });
  await client.bookings.get("b-1");

  assert.deepEqual(
    requests.map(({ url }) => url),
    ["/v2/bookings/b-1?include=event", "/v2/bookings/b-1"],
  );
});

test("options that are undefined are as those left out", async (t) => {
  const { options, requests } = await serve(t, [PAGE, made]);
  const left = { maxRetries: undefined, maxWait: undefined, timeout: undefined, fetch: undefined };

  const booking = await new Client({ ...options, ...left }).bookings.create(BODY);

  assert.equal(booking.id, "b-1");
  assert.equal(requests.length, 2);
});

test("a timeout may be endless", async (t) => {
  const { options, requests } = await serve(t, [{ ...made, delay: 50 }]);

  const booking = await new Client({ ...options, timeout: Infinity }).bookings.create(BODY);

  assert.equal(booking.id, "b-1");
  assert.equal(requests.length, 1);
});

test("what is no key, header or date is a mistake of the caller, and is not sent", async (t) => {
  const { options, requests } = await serve(t, []);
  const secret = "live_api_key_1";
  const client = new Client(options);

  const errors = [`${secret}\n`, `${secret}…`].map((key) => {
    try {
      return new Client({ ...options, key });
    } catch (error) {
      return [error.name, error.message];
    }
  });
  const header = await thrown(client.bookings.create(BODY, { idempotencyKey: "Zoë ☕" }));
  const date = await thrown(client.bookings.create({ ...BODY, start: new Date("soon") }));

  const text = "The key has a character that no key has, such as a line break.";
  assert.deepEqual(errors, Array(2).fill(["TypeError", text]));
  assert.deepEqual([header.name, date.name, date.message], ["TypeError", "RangeError", "start is no valid date."]);
  assert.equal(requests.length, 0);
});

test("a lost response and a busy service are repeated with the same key", async (t) => {
  const busy = refusal(503, "unavailable", {}, { "Retry-After": "0" });
  const running = refusal(409, "idempotency_in_progress");
  const { options, requests } = await serve(t, ["drop", busy, running, { status: 502, body: "<p>" }, made]);

  const booking = await new Client(options).bookings.create(BODY);

  assert.equal(booking.id, "b-1");
  assert.equal(requests.length, 5);
  assert.equal(new Set(keys(requests)).size, 1);
  assert.equal(new Set(requests.map(({ body }) => body)).size, 1);
});

test("each write has a key of its own, or the caller's, and queries have none", async (t) => {
  const list = { body: { data: [] } };
  const { options, requests } = await serve(t, [made, made, made, list, list, { status: 204 }]);
  const client = new Client(options);

  await client.bookings.create(BODY);
  await client.bookings.create(BODY);
  await client.bookings.create(BODY, { idempotencyKey: "order-7" });
  await client.availability.find({});
  await client.webhooks.list().all();
  const deleted = await client.bookings.delete("b-1");

  const [first, second, ...others] = keys(requests);
  assert.notEqual(first, second);
  assert.deepEqual(others, ["order-7", undefined, undefined, undefined]);
  assert.equal(deleted, undefined);
});

test("the wait is that of Retry-After, as seconds and as a date", async (t) => {
  const past = new Date(Date.now() - 60_000).toUTCString();
  const { options, requests } = await serve(t, [
    refusal(429, "rate_limited", {}, { "Retry-After": "0" }),
    refusal(503, "unavailable", {}, { "Retry-After": past }),
    made,
  ]);

  // Without Retry-After it would wait for half an hour.
  await new Client({ ...options, backoff: 3_600_000, maxWait: 3_600_000 }).bookings.create(BODY);

  assert.equal(requests.length, 3);
});

test("a Retry-After that is neither leaves the wait as it is", async (t) => {
  const { options, requests } = await serve(
    t,
    ["-1", "1.5", "soon 5", ""].map((text) => refusal(503, "unavailable", {}, { "Retry-After": text })),
  );
  const client = new Client({ ...options, maxRetries: 0 });

  const waits = [];
  for (let count = 0; count < 4; count += 1) {
    waits.push((await thrown(client.bookings.get("b-1"))).retryAfter);
  }

  assert.deepEqual(waits, Array(4).fill(undefined));
  assert.equal(requests.length, 4);
});

test("a wait that is too long is an error at once, which names it", async (t) => {
  const date = new Date(Date.now() + 3_000_000).toUTCString();
  const { options, requests } = await serve(t, [
    refusal(429, "rate_limited", {}, { "Retry-After": "61" }),
    refusal(503, "unavailable", {}, { "Retry-After": date }),
  ]);
  const client = new Client(options);

  const error = await thrown(client.bookings.create(BODY));
  const dated = await thrown(client.bookings.create(BODY));

  assert.deepEqual(
    [error.name, error.status, error.code, error.retryAfter, error.requestId, error.message],
    ["SchedulingError", 429, "rate_limited", 61, "r-1", "No."],
  );
  assert.ok(dated.retryAfter > 2_000 && dated.retryAfter <= 3_000, String(dated.retryAfter));
  assert.equal(requests.length, 2);
});

test("repetitions end with the last error", async (t) => {
  const broken = refusal(500, "internal");
  const { options, requests } = await serve(t, Array(9).fill(broken));

  const error = await thrown(new Client({ ...options, maxRetries: 2 }).bookings.get("b-1"));

  assert.deepEqual([error.status, error.code], [500, "internal"]);
  assert.equal(requests.length, 3);
});

test("without any response there is a NetworkError with its cause", async (t) => {
  const { options, requests } = await serve(t, ["drop", "hang"]);

  const client = new Client({ ...options, maxRetries: 1, timeout: 200 });
  const error = await thrown(client.bookings.get("b-1"));

  assert.ok(error instanceof NetworkError);
  assert.equal(error.cause.message, "No response within 200 ms.");
  assert.equal(requests.length, 2);
});

test("other refusals are not repeated, and their code tells the body", async (t) => {
  const alternatives = [{ start: "2026-11-23T10:00:00+01:00", end: "2026-11-23T10:30:00+01:00" }];
  const { options, requests } = await serve(t, [
    refusal(409, "slot_taken", { alternatives }),
    refusal(422, "invalid", { errors: { start: ["Must be a string."] } }),
    { status: 404, headers: { "Content-Type": "text/html" }, body: "<h1>Not here</h1>" },
  ]);
  const client = new Client(options);

  const taken = await thrown(client.bookings.create(BODY));
  const invalid = await thrown(client.bookings.create(BODY));
  const foreign = await thrown(client.bookings.get("b-1"));

  assert.ok(taken instanceof SchedulingError && taken instanceof Error);
  assert.deepEqual(
    [isError(taken, "slot_taken"), isError(taken, "invalid"), isError(new Error(), "invalid")],
    [true, false, false],
  );
  assert.deepEqual(taken.body.alternatives, [
    { start: new Date("2026-11-23T09:00:00Z"), end: new Date("2026-11-23T09:30:00Z") },
  ]);
  assert.deepEqual(invalid.body.errors, { start: ["Must be a string."] });
  assert.deepEqual(
    [foreign.status, foreign.code, foreign.message, foreign.requestId],
    [404, "unexpected_response", "404 Not Found", ""],
  );
  assert.equal(requests.length, 3);
});

test("a deletion that finds nothing is done if an earlier attempt may have done it", async (t) => {
  const missing = refusal(404, "not_found");
  const limited = refusal(429, "rate_limited", {}, { "Retry-After": "0" });
  const { options, requests } = await serve(t, [
    ...["drop", missing],
    ...[PAGE, missing],
    ...["drop", limited, missing],
    missing,
    // The service did nothing before.
    ...[limited, missing],
    ...[refusal(408, "request_timeout"), missing],
  ]);
  const client = new Client(options);

  const done = [];
  for (const id of ["r-1", "r-2", "r-3"]) done.push(await client.resources.delete(id));
  const refused = [];
  for (const id of ["r-4", "r-5", "r-6"]) refused.push((await thrown(client.resources.delete(id))).code);

  assert.deepEqual(done, [undefined, undefined, undefined]);
  assert.deepEqual(refused, ["not_found", "not_found", "not_found"]);
  assert.equal(requests.length, 12);
});

test("a page of a proxy is an error of its own, also with 200, and a redirect is not followed", async (t) => {
  const html = { "Content-Type": "text/html", "Service-Request-Id": "r-9" };
  const { options, requests } = await serve(t, [
    { status: 200, headers: html, body: "<h1>Log in to the network</h1>" },
    { status: 301, headers: { ...html, Location: "/v2/bookings/" }, body: "<h1>Moved</h1>" },
    PAGE,
    PAGE,
    { status: 201, headers: { "Service-Request-Id": "r-9" } },
  ]);
  const client = new Client({ ...options, maxRetries: 1 });

  const errors = [];
  for (let count = 0; count < 4; count += 1) errors.push(await thrown(client.bookings.create(BODY)));

  assert.deepEqual(
    errors.map(({ name, status, code, message, requestId }) => [name, status, code, message, requestId]),
    [
      ["SchedulingError", 200, "unexpected_response", "The response is no JSON.", "r-9"],
      ["SchedulingError", 301, "unexpected_response", "301 Moved Permanently", "r-9"],
      ["SchedulingError", 502, "unexpected_response", "502 Bad Gateway", ""],
      ["SchedulingError", 201, "unexpected_response", "The response is no JSON.", "r-9"],
    ],
  );
  assert.deepEqual(
    requests.map(({ method, url }) => [method, url]),
    Array(5).fill(["POST", "/v2/bookings"]),
  );
});

test("a booking that needs a code is held, and booked with it", async (t) => {
  const expires_at = "2026-11-20T09:45:00+00:00";
  const held = { data: { reservation_id: "h-1", expires_at, verification: "email" } };
  const { options, requests } = await serve(t, [{ status: 202, body: held }, made]);
  const client = new Client(options);

  const error = await thrown(client.bookings.create(BODY));
  const booking = await client.bookings.verify(error.reservationId, "123456");

  assert.ok(error instanceof VerificationRequired);
  assert.deepEqual([error.reservationId, error.expiresAt], ["h-1", new Date(expires_at)]);
  assert.equal(booking.id, "b-1");
  assert.deepEqual(
    [requests[1].url, requests[1].body],
    ["/v2/bookings/reserve/h-1/verify", '{"code":"123456"}'],
  );
});

test("a signal ends a request and a wait, and nothing is repeated", async (t) => {
  const { options, requests } = await serve(t, ["hang", refusal(503, "unavailable")]);
  const reason = new Error("The user left.");
  const client = new Client({
    ...options,
    backoff: 3_600_000,
    maxWait: 3_600_000,
    fetch: async (...given) => {
      const answer = fetch(...given);
      if (requests.length === 0) setTimeout(() => request.abort(reason), 50);
      else answer.then(() => setTimeout(() => wait.abort(reason), 50));
      return answer;
    },
  });
  const request = new AbortController();
  const wait = new AbortController();

  const first = await thrown(client.bookings.create(BODY, { signal: request.signal }));
  const second = await thrown(client.bookings.create(BODY, { signal: wait.signal }));
  const third = await thrown(client.bookings.create(BODY, { signal: wait.signal }));

  assert.deepEqual([first, second, third], [reason, reason, reason]);
  assert.equal(requests.length, 2);
});
