import { webcrypto } from "#crypto";
import type { Booking, BookingCall, CalendarCall, ObjectCall } from "./generated/types.js";
import { readTimes } from "./times.js";

/** The body of a webhook with `format: "standard"`. */
export interface StandardCall<Data = BookingCall> {
  type: string;
  timestamp: Date;
  data: Data;
}

/** The body of a webhook with `format: "thin"`. */
export interface ThinCall {
  kind: string;
  id: string;
  /** Of a call about a booking: before its change, or earlier. Of another call: later changes follow. */
  cursor: string;
}

/** A `Booking` is the body of an event notification. */
export type WebhookCall =
  | BookingCall
  | Booking
  | ObjectCall
  | CalendarCall
  | StandardCall<unknown>
  | ThinCall;

/** Headers as Node.js, `fetch` and frameworks have them; names in any letter case. */
export type CallHeaders = Headers | Record<string, string | readonly string[] | undefined>;

export interface VerifyOptions {
  /** How many seconds the call's time may differ from this machine's. Default: 300. */
  tolerance?: number;
  /** The present time. */
  now?: Date;
}

/** The call is not the service's, was changed on its way, or is repeated from long ago. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/**
 * Returns the body of a webhook call with its instants as dates, if its signature is valid; null if
 * it has none: a call with the method GET, of which only id and time are signed.
 *
 * @param body as it arrived: text or bytes, not parsed; empty for a GET
 * @param secrets `whsec_...`; several while a receiver changes from one to another. After
 *   `webhooks.rotate` the service signs with both secrets for 24 hours: one is enough.
 * @throws WebhookVerificationError
 */
export async function verify<Call extends WebhookCall = BookingCall>(
  body: string | Uint8Array,
  headers: CallHeaders,
  secrets: string | readonly string[],
  { tolerance = 300, now = new Date() }: VerifyOptions = {},
): Promise<Call | null> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature").split(" ");
  if (!/^\d+$/.test(timestamp) || Math.abs(now.getTime() / 1000 - Number(timestamp)) > tolerance) {
    throw new WebhookVerificationError("The time of the call differs too much from the present.");
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = join(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const key = await importKey(secret);
    for (const signature of signatures) {
      if (await isSignature(key, signature, signed)) return readCall(bytes) as Call | null;
    }
  }
  throw new WebhookVerificationError("No signature is valid.");
}

function header(headers: CallHeaders, name: string): string {
  const value = isHeaders(headers)
    ? headers.get(name)
    : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  const text = Array.isArray(value) ? value.join(" ") : value;
  if (!text) throw new WebhookVerificationError(`The header ${name} is missing.`);
  return text as string;
}

function isHeaders(headers: CallHeaders): headers is Headers {
  return typeof headers["get"] === "function";
}

function join(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return whole;
}

function importKey(secret: string): Promise<CryptoKey> {
  const bytes = decodeBase64(secret.replace(/^whsec_/, ""));
  if (!bytes?.length) throw new TypeError("A secret is whsec_ and base64.");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return webcrypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
}

/** `v1,<base64>`, compared in constant time. */
async function isSignature(
  key: CryptoKey,
  text: string,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const [version, value = ""] = text.split(",");
  const bytes = version === "v1" ? decodeBase64(value) : undefined;
  return bytes !== undefined && (await webcrypto.subtle.verify("HMAC", key, bytes, signed));
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function readCall(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return null;
  const call = JSON.parse(new TextDecoder().decode(bytes));
  if (!("timestamp" in call && "data" in call)) return readTimes(call, shapeOf(call));
  const timestamp = new Date(call.timestamp);
  return { ...call, timestamp, data: readTimes(call.data, shapeOf(call.data)) };
}

function shapeOf(call: object): string {
  if ("object_id" in call) return "ObjectCall";
  return "problem" in call && "calendar" in call ? "CalendarCall" : "BookingCall";
}
