import type {
  Booking,
  Calendar,
  ChangesPage,
  CustomerOfBooking,
  Delivery,
  Event,
  ListedChange,
  Project,
  Resource,
  Schedule,
  Webhook,
} from "./generated/types.js";
import { pause, type Transport } from "./transport.js";

interface ObjectsOfChanges {
  booking: Booking;
  event: Event;
  resource: Resource;
  project: Project;
  schedule: Schedule;
  calendar: Calendar;
  customer: CustomerOfBooking;
  webhook: Webhook;
  delivery: Delivery;
}

export type ChangeType = keyof ObjectsOfChanges;

/** A change: its `type` tells the type of its `object`, which is null if it is deleted. */
export type FollowedChange = {
  [Type in ChangeType]: Omit<ListedChange, "type" | "object"> & {
    type: Type;
    object: ObjectsOfChanges[Type] | null;
  };
}[ChangeType];

export interface FollowOptions {
  /** The place to continue from. Without it: the present moment. */
  cursor?: string | undefined;
  /** Only changes of these objects. */
  types?: readonly ChangeType[] | undefined;
  /** The most changes of a response. */
  limit?: number | undefined;
  /** The milliseconds between two requests where there is nothing new. Default: 5,000. */
  interval?: number | undefined;
  /** Whether to end after the last change there is, instead of waiting for more. */
  untilNow?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** The changes after a cursor, each once and in their order. */
export class ChangeFeed implements AsyncIterable<FollowedChange> {
  /**
   * The place after the last change that was read: store it once you have stored the change, and
   * continue there. It also advances without changes. undefined: nothing was asked yet.
   */
  cursor: string | undefined;
  readonly #transport: Transport;
  readonly #options: FollowOptions;

  constructor(transport: Transport, options: FollowOptions = {}) {
    this.#transport = transport;
    this.#options = options;
    this.cursor = options.cursor;
  }

  /** Throws SchedulingError `cursor_expired` if changes after the cursor are no longer listed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<FollowedChange> {
    const { types, limit, interval = 5000, untilNow = false, signal } = this.#options;
    let tag = "";
    for (;;) {
      const asked = this.cursor;
      const answer = await this.#transport.send(
        "GET /v2/changes",
        { query: { cursor: asked, types, limit } },
        { signal, headers: tag ? { "If-None-Match": tag } : undefined },
      );
      let hasMore = false;
      if (answer.status !== 304) {
        const page = answer.body as ChangesPage;
        for (const change of page.data as FollowedChange[]) {
          this.cursor = change.cursor;
          yield change;
        }
        // It is of the answer to this cursor, and says nothing of another one.
        tag = page.next_cursor === asked ? (answer.headers.get("ETag") ?? "") : "";
        this.cursor = page.next_cursor;
        hasMore = page.has_more;
      }
      if (hasMore) continue;
      if (untilNow) return;
      await pause(interval, signal);
    }
  }
}
