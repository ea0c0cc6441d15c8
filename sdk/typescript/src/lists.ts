import { OPERATIONS } from "./generated/tables.js";
import type { Answer, CallOptions, Operation, Transport } from "./transport.js";

/** The operations that answer a list. */
export type ListOperation = {
  [Name in Operation]: Name extends `GET ${string}`
    ? Answer<Name> extends { data: readonly unknown[] }
      ? Name
      : never
    : never;
}[Operation];

export type Row<Name extends ListOperation> =
  Answer<Name> extends { data: readonly (infer Item)[] } ? Item : never;

interface Input {
  path?: Record<string, string> | undefined;
  query?: Record<string, unknown> | undefined;
}

/** The rows of a list, over as many requests as it has pages. Nothing is sent before the first row. */
export class List<Name extends ListOperation> implements AsyncIterable<Row<Name>> {
  readonly #transport: Transport;
  readonly #name: Name;
  readonly #input: Input;
  readonly #options: CallOptions;

  constructor(transport: Transport, name: Name, input: Input, options: CallOptions = {}) {
    this.#transport = transport;
    this.#name = name;
    this.#input = input;
    this.#options = options;
  }

  /** The pages as the service answers them, with `total`, from `query.page` on. */
  async *pages(): AsyncGenerator<Answer<Name>> {
    const { path, query = {} } = this.#input;
    for (let page = Number(query["page"] ?? 1); ; page += 1) {
      // Not every list has pages.
      const asked = page === Number(query["page"] ?? 1) ? query : { ...query, page };
      const answer = await this.#transport.send(this.#name, { path, query: asked }, this.#options);
      yield answer.body as Answer<Name>;
      const { last_page: last = 1 } = answer.body as { last_page?: number };
      if (page >= last) return;
    }
  }

  /**
   * By cursor: no row is skipped or repeated while others are added or deleted. With `query.page`, by
   * page numbers.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Row<Name>> {
    const { path, query = {} } = this.#input;
    const [, , hasPages] = OPERATIONS[this.#name];
    if (!hasPages || query["page"] !== undefined) {
      for await (const page of this.pages()) yield* page.data as Row<Name>[];
      return;
    }
    let cursor: unknown = query["cursor"] ?? "";
    while (cursor !== null) {
      const asked = { ...query, cursor };
      const answer = await this.#transport.send(this.#name, { path, query: asked }, this.#options);
      const part = answer.body as { data: Row<Name>[]; next_cursor?: string | null };
      yield* part.data;
      cursor = part.next_cursor ?? null;
    }
  }

  /** All rows at once. */
  async all(): Promise<Row<Name>[]> {
    const rows: Row<Name>[] = [];
    for await (const row of this) rows.push(row);
    return rows;
  }
}
