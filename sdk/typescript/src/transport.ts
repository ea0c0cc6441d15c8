import { webcrypto } from "#crypto";
import { type ErrorCode, NetworkError, SchedulingError } from "./errors.js";
import { OPERATIONS } from "./generated/tables.js";
import type { Operations } from "./generated/types.js";
import { readTimes } from "./times.js";

export interface ClientOptions {
  /** The address of the service, with or without `/v2`; a path is on the site of the page. */
  url: string;
  /** A server key, widget key, access token or resource key. In a web page: a widget key only. */
  key: string;
  /** The app's slug, for an access token of an account with several apps. */
  app?: string;
  /** How often a request is repeated at most. Default: 4. */
  maxRetries?: number;
  /** The wait before the first repetition in milliseconds; it doubles each time. Default: 500. */
  backoff?: number;
  /** The longest wait in milliseconds. A longer `Retry-After` is an error at once. Default: 60,000. */
  maxWait?: number;
  /** The milliseconds after which an attempt without a response is given up. Default: 30,000. */
  timeout?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** Ends the call, with its waits. */
  signal?: AbortSignal | undefined;
  /** For a write that is to be repeated later, after a crash. By default a new one per call. */
  idempotencyKey?: string | undefined;
  /** Further headers, such as `If-Match`. */
  headers?: Record<string, string> | undefined;
}

export type Operation = keyof Operations;
export type Answer<Name extends Operation> = Operations[Name]["answer"];

/** What an operation takes: the parts of its path, its query and its body. */
export type Input<Name extends Operation> = Pick<Operations[Name], "path" | "query" | "body">;

interface Parts {
  path?: Record<string, string> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

export interface Received {
  status: number;
  headers: Headers;
  /** The parsed body with dates; undefined without one. */
  body: unknown;
}

type Attempt = { response: Response; text: string } | { failure: unknown };

/** The milliseconds that `setTimeout` can wait; it takes more for none. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A busy service or a proxy without one: the request had no effect, or its key protects it. */
const REPEATED = new Set([408, 429, 500, 502, 503, 504]);

/** Sends requests, and repeats them where that can help. */
export class Transport {
  readonly #options: Required<Omit<ClientOptions, "app">>;
  readonly #headers: Record<string, string>;

  constructor({
    url,
    key,
    app,
    maxRetries = 4,
    backoff = 500,
    maxWait = 60_000,
    timeout = 30_000,
    fetch = (...given) => globalThis.fetch(...given),
  }: ClientOptions) {
    if (!/^(https?:\/\/|\/|$)/i.test(url)) {
      throw new TypeError(`The address of the service begins with https:// or http://: ${url}`);
    }
    // The error of `fetch` would show the key.
    if (!/^[!-~]*$/.test(key)) {
      throw new TypeError("The key has a character that no key has, such as a line break.");
    }
    this.#options = { url, key, maxRetries, backoff, maxWait, timeout, fetch };
    this.#headers = { Authorization: `Bearer ${key}`, Accept: "application/json" };
    if (app !== undefined) this.#headers["Service-App"] = app;
  }

  /** Throws SchedulingError for a refusal, NetworkError without a response. */
  async call<Name extends Operation>(
    name: Name,
    input: Input<Name>,
    options: CallOptions = {},
  ): Promise<Answer<Name>> {
    return (await this.send(name, input, options)).body as Answer<Name>;
  }

  /** As `call`; also returns status and headers. 304 is no error. */
  async send(name: Operation, input: Parts, options: CallOptions = {}): Promise<Received> {
    const [method, template] = name.split(" ") as [string, string];
    if (!Object.hasOwn(OPERATIONS, name)) throw new TypeError(`There is no operation ${name}.`);
    const [schema, takesKey] = OPERATIONS[name];
    const headers = { ...this.#headers };
    // A followed redirect makes a GET of a POST.
    const request: RequestInit = { method, headers, redirect: "manual" };
    if (input.body !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(input.body, refuseInvalidDate);
    }
    if (takesKey) headers["Idempotency-Key"] = options.idempotencyKey ?? newKey();
    Object.assign(headers, options.headers);
    new Headers(headers); // throws TypeError: a mistake of the caller, which a repetition does not mend
    const url = this.#url(template, input);
    let mayBeDone = false;
    for (let count = 0; ; count += 1) {
      const attempt = await this.#attempt(url, request, options.signal);
      const refusal = refusalOf(attempt);
      if (!refusal && "response" in attempt) return received(attempt, schema);
      const status = refusal instanceof SchedulingError ? refusal.status : undefined;
      // An earlier attempt deleted it, and its response was lost.
      if (mayBeDone && method === "DELETE" && status === 404) {
        return { status: 204, headers: new Headers(), body: undefined };
      }
      mayBeDone ||= status === undefined || status >= 500;
      const wait = refusal && this.#wait(refusal, count);
      if (wait === undefined) throw refusal;
      await pause(wait, options.signal);
    }
  }

  #url(template: string, { path = {}, query = {} }: Parts): string {
    const url = this.#options.url.replace(/\/+$/, "").replace(/\/v2$/, "");
    const place = template.replace(/\{(\w+)\}/g, (_, part: string) => {
      const value = path[part];
      // An empty one would address the list, and `..` another path.
      if (!value || /^\.+$/.test(value)) throw new TypeError(`${part} must be an id.`);
      return encodeURIComponent(value);
    });
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) parameters.set(name, parameterText(value));
    }
    const text = String(parameters); // `size` is newer than Node.js 18 and Safari 16
    return text ? `${url}${place}?${text}` : `${url}${place}`;
  }

  /** Sends once. Throws if the caller's signal ended the call. */
  async #attempt(url: string, request: RequestInit, signal?: AbortSignal): Promise<Attempt> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    const { timeout } = this.#options;
    const late = new Error(`No response within ${timeout} ms.`);
    const timer = setTimeout(() => controller.abort(late), Math.min(timeout, LONGEST_TIMER));
    try {
      const response = await this.#options.fetch(url, { ...request, signal: controller.signal });
      return { response, text: await response.text() };
    } catch (failure) {
      signal?.throwIfAborted();
      return { failure };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  /** The milliseconds before the next attempt; undefined: there is none. */
  #wait(refusal: SchedulingError | NetworkError, count: number): number | undefined {
    const { maxRetries, backoff, maxWait } = this.#options;
    if (count >= maxRetries || !isRepeated(refusal)) return undefined;
    const asked = refusal instanceof SchedulingError ? refusal.retryAfter : undefined;
    if (asked === undefined) return Math.min(backoff * 2 ** count, maxWait) * (0.5 + Math.random() / 2);
    return asked * 1000 <= maxWait ? asked * 1000 : undefined;
  }
}

function isRepeated(refusal: SchedulingError | NetworkError): boolean {
  return (
    refusal instanceof NetworkError ||
    REPEATED.has(refusal.status) ||
    refusal.code === "idempotency_in_progress"
  );
}

/** The error that an attempt ended with; undefined for a response without one. */
function refusalOf(attempt: Attempt): SchedulingError | NetworkError | undefined {
  if ("failure" in attempt) {
    return new NetworkError("The service did not respond.", { cause: attempt.failure });
  }
  const { response, text } = attempt;
  if (response.ok || response.status === 304) return undefined;
  const { status } = response;
  const wait = readRetryAfter(response.headers.get("Retry-After"));
  const body = readErrorBody(text);
  if (body) {
    const whole = readTimes(body, "Error") as never;
    return new SchedulingError(status, body.code as ErrorCode, whole, wait);
  }
  // A browser hides the status of a redirect.
  return unexpected(response, status ? `${status} ${response.statusText}`.trim() : "Redirected.", wait);
}

/** The error of a response that is not the API's. */
function unexpected(response: Response, error: string, retryAfter?: number): SchedulingError {
  const code = "unexpected_response" as const;
  const request_id = response.headers.get("Service-Request-Id") ?? "";
  return new SchedulingError(response.status, code, { error, code, request_id }, retryAfter);
}

function readErrorBody(text: string): { code: string } | undefined {
  const body = readJson(text) as { code?: unknown; error?: unknown } | null | undefined;
  return typeof body?.code === "string" && typeof body.error === "string"
    ? (body as { code: string })
    : undefined;
}

/** Throws SchedulingError for a body that is no JSON. */
function received({ response, text }: { response: Response; text: string }, schema: string): Received {
  const { status, headers } = response;
  if (!text && status !== 200 && status !== 201) return { status, headers, body: undefined };
  const body = readJson(text);
  if (body === undefined) throw unexpected(response, "The response is no JSON.");
  return { status, headers, body: readTimes(body, schema || undefined) };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The seconds in `Retry-After`: a number, or a date (RFC 9110). */
export function readRetryAfter(value: string | null, now = Date.now()): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  // Of other texts, such as "-1", Date.parse makes dates too.
  const date = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

/** JSON would have null for it. For `JSON.stringify`, which calls it with the object as `this`. */
function refuseInvalidDate(this: unknown, name: string, value: unknown): unknown {
  const given = (this as Record<string, unknown>)[name];
  if (given instanceof Date && Number.isNaN(given.getTime())) {
    throw new RangeError(`${name} is no valid date.`);
  }
  return value;
}

function parameterText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** Random, also where a page without https has no `randomUUID`. */
function newKey(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Waits; throws if the signal ends the wait. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", end, { once: true });
  });
}
