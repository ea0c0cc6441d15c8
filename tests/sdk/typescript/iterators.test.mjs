import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, isError } from "scheduling-client";
import { refusal, serve } from "./scripted_service.mjs";

const page = (current_page, last_page, ...ids) => ({
  body: { data: ids.map((id) => ({ id })), current_page, last_page, total: 5 },
});
const part = (next_cursor, ...ids) => ({ body: { data: ids.map((id) => ({ id })), next_cursor } });
const change = (number, more = {}) => ({
  id: String(number),
  cursor: `${number}-a`,
  type: "schedule",
  action: "created",
  at: "2026-11-20T09:30:00+0000",
  object_id: `s-${number}`,
  object: { id: `s-${number}`, created_at: "2026-11-20T09:30:00+0000" },
  ...more,
});
const changes = (next_cursor, has_more, data, headers = {}) => ({
  headers,
  body: { data, next_cursor, has_more },
});
const urls = (requests) => requests.map(({ url }) => url);

test("a list is read by cursor, and a part is asked for when it is needed", async (t) => {
  const { options, requests } = await serve(t, [
    part("p2", "a", "b"),
    part("p3", "c", "d"),
    part(null, "e"),
    part("p2", "a", "b"),
  ]);
  const client = new Client(options);

  const rows = await client.resources.list({ limit: 2, search: "name:A*" }).all();
  const read = [];
  for await (const { id } of client.resources.list({ limit: 2 })) {
    read.push(id);
    if (id === "b") break;
  }

  assert.deepEqual(rows.map(({ id }) => id), ["a", "b", "c", "d", "e"]);
  assert.deepEqual(read, ["a", "b"]);
  assert.deepEqual(urls(requests), [
    "/v2/resources?limit=2&search=name%3AA*&cursor=",
    "/v2/resources?limit=2&search=name%3AA*&cursor=p2",
    "/v2/resources?limit=2&search=name%3AA*&cursor=p3",
    "/v2/resources?limit=2&cursor=",
  ]);
});

test("pages have numbers and a total, also from a later one on", async (t) => {
  const { options, requests } = await serve(t, [
    page(1, 2, "a", "b"),
    page(2, 2, "c"),
    page(2, 3, "c", "d"),
    page(3, 3, "e"),
  ]);
  const client = new Client(options);

  const pages = [];
  for await (const { total, data } of client.resources.list({ limit: 2 }).pages()) {
    pages.push([total, data.map(({ id }) => id)]);
  }
  const rows = await client.resources.list({ limit: 2, page: 2 }).all();

  assert.deepEqual(pages, [
    [5, ["a", "b"]],
    [5, ["c"]],
  ]);
  assert.deepEqual(rows.map(({ id }) => id), ["c", "d", "e"]);
  assert.deepEqual(urls(requests), [
    "/v2/resources?limit=2",
    "/v2/resources?limit=2&page=2",
    "/v2/resources?limit=2&page=2",
    "/v2/resources?limit=2&page=3",
  ]);
});

test("a list without pages is one request", async (t) => {
  const { options, requests } = await serve(t, [{ body: { data: [{ id: "w" }] } }]);

  const rows = await new Client(options).list("GET /v2/webhooks", {}).all();

  assert.deepEqual(rows, [{ id: "w" }]);
  assert.deepEqual(urls(requests), ["/v2/webhooks"]);
});

test("changes are read over parts, and each has its cursor", async (t) => {
  const { options, requests } = await serve(t, [
    changes("2-a", true, [change(1), change(2)]),
    changes("3-a", true, []),
    changes("5-a", false, [change(4, { object: null }), change(5)]),
  ]);
  const feed = new Client(options).changes.follow({
    cursor: "0-",
    types: ["schedule", "booking"],
    limit: 2,
    untilNow: true,
  });

  const read = [];
  for await (const each of feed) read.push([each.id, each.cursor, feed.cursor, each.at, each.object]);

  const at = new Date("2026-11-20T09:30:00Z");
  const object = (id) => ({ id, created_at: at });
  assert.deepEqual(read, [
    ["1", "1-a", "1-a", at, object("s-1")],
    ["2", "2-a", "2-a", at, object("s-2")],
    ["4", "4-a", "4-a", at, null],
    ["5", "5-a", "5-a", at, object("s-5")],
  ]);
  const query = "types=schedule%2Cbooking&limit=2";
  assert.deepEqual(urls(requests), [
    `/v2/changes?cursor=0-&${query}`,
    `/v2/changes?cursor=2-a&${query}`,
    `/v2/changes?cursor=3-a&${query}`,
  ]);
});

test("a feed continues in the middle of a part", async (t) => {
  const { options, requests } = await serve(t, [
    changes("3-a", false, [change(1), change(2), change(3)]),
    changes("3-a", false, [change(2), change(3)]),
  ]);
  const client = new Client(options);
  const stopped = client.changes.follow({ cursor: "0-" });

  for await (const { id } of stopped) if (id === "1") break;
  const rest = [];
  for await (const { id } of client.changes.follow({ cursor: stopped.cursor, untilNow: true })) {
    rest.push(id);
  }

  assert.deepEqual([stopped.cursor, rest], ["1-a", ["2", "3"]]);
  assert.deepEqual(urls(requests), ["/v2/changes?cursor=0-", "/v2/changes?cursor=1-a"]);
});

test("a feed waits for changes, and asks with the ETag of the same cursor", async (t) => {
  const { options, requests } = await serve(t, [
    changes("7-a", false, [], { ETag: '"zero"' }),
    changes("7-a", false, [], { ETag: '"one"' }),
    { status: 304 },
    changes("8-a", false, [change(8)], { ETag: '"two"' }),
    changes("8-a", false, [], { ETag: '"three"' }),
    { status: 304 },
    changes("9-a", false, [change(9)]),
  ]);
  const feed = new Client(options).changes.follow({ interval: 1 });

  const read = [];
  for await (const { id } of feed) if (read.push(id) === 2) break;

  assert.deepEqual(read, ["8", "9"]);
  assert.deepEqual(
    requests.map(({ url, headers }) => [url, headers["if-none-match"]]),
    [
      ["/v2/changes", undefined],
      ["/v2/changes?cursor=7-a", undefined],
      ["/v2/changes?cursor=7-a", '"one"'],
      ["/v2/changes?cursor=7-a", '"one"'],
      ["/v2/changes?cursor=8-a", undefined],
      ["/v2/changes?cursor=8-a", '"three"'],
      ["/v2/changes?cursor=8-a", '"three"'],
    ],
  );
});

test("a feed ends with its signal, and with a cursor that is no longer listed", async (t) => {
  const { options, requests } = await serve(t, [
    changes("7-a", false, [change(7)]),
    refusal(410, "cursor_expired"),
  ]);
  const client = new Client(options);
  const controller = new AbortController();

  const follow = async (given) => {
    for await (const { id } of client.changes.follow(given)) controller.abort(new Error(id));
  };
  await assert.rejects(
    follow({ cursor: "6-a", signal: controller.signal, interval: 3_600_000 }),
    new Error("7"),
  );
  await assert.rejects(follow({ cursor: "1-a" }), (error) => isError(error, "cursor_expired"));

  assert.equal(requests.length, 2);
});
