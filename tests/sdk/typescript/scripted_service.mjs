// A server on loopback that answers one request after another as a test wrote it.
import http from "node:http";

/** `answers`: each `{status, headers, body, delay}` (milliseconds), or "drop" for a connection that breaks without a
 * response, or "hang" for one without any. Returns the client's options and the requests. */
export async function serve(t, answers) {
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: Buffer.concat(parts).toString() });
    const answer = answers[requests.length - 1] ?? { status: 500, body: "not expected" };
    if (answer === "hang") return;
    if (answer === "drop") {
      request.socket.destroy();
      return;
    }
    const { status = 200, headers: more = {}, body, delay = 0 } = answer;
    if (delay) await new Promise((resolve) => setTimeout(resolve, delay));
    response.writeHead(status, { "Content-Type": "application/json", ...more });
    response.end(typeof body === "object" ? JSON.stringify(body) : body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { requests, options: { url, key: "test_api_key_secret", backoff: 1 } };
}

export function refusal(status, code, more = {}, headers = {}) {
  return { status, headers, body: { error: "No.", code, request_id: "r-1", ...more } };
}
