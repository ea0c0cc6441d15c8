import { ChangeFeed, type FollowOptions } from "./changes.js";
import { VerificationRequired } from "./errors.js";
import type { Booking, Operations, Unverified } from "./generated/types.js";
import { List, type ListOperation } from "./lists.js";
import {
  type Answer,
  type CallOptions,
  type ClientOptions,
  type Input,
  type Operation,
  Transport,
} from "./transport.js";

type Body<Name extends Operation> = NonNullable<Operations[Name]["body"]>;
type Query<Name extends Operation> = NonNullable<Operations[Name]["query"]>;
type Content<Name extends Operation> = Answer<Name> extends { data: infer Data } ? Data : never;

/** A booking as the request that made or moved it answers. */
export type MadeBooking = Booking &
  Required<Pick<Booking, "start" | "end" | "resource_id" | "project_id">>;

/**
 * The service with one key. Methods return the object in `data`; lists are iterated. Each throws
 * SchedulingError for a refusal and NetworkError without a response. `call` and `list` reach every
 * operation.
 */
export class Client {
  readonly bookings: Bookings;
  readonly availability: Availability;
  readonly resources: Resources;
  readonly projects: Projects;
  readonly events: Events;
  readonly customers: Customers;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly changes: Changes;
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    this.bookings = new Bookings(this);
    this.availability = new Availability(this);
    this.resources = new Resources(this);
    this.projects = new Projects(this);
    this.events = new Events(this);
    this.customers = new Customers(this);
    this.webhooks = new Webhooks(this);
    this.deliveries = new Deliveries(this);
    this.changes = new Changes(this.#transport);
  }

  /**
   * Any operation, by its method and path: `call("PUT /v2/schedules/{schedule_id}", {path, body})`.
   * Returns the whole answer.
   */
  call<Name extends Operation>(
    name: Name,
    input: Input<Name>,
    options?: CallOptions,
  ): Promise<Answer<Name>> {
    return this.#transport.call(name, input, options);
  }

  /** Any list: `list("GET /v2/schedules", {query})`. */
  list<Name extends ListOperation>(
    name: Name,
    input: Omit<Input<Name>, "body">,
    options?: CallOptions,
  ): List<Name> {
    return new List(this.#transport, name, input, options);
  }
}

class Bookings {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/bookings">, options?: CallOptions): List<"GET /v2/bookings"> {
    return this.client.list("GET /v2/bookings", { query }, options);
  }

  async get(
    booking_id: string,
    query?: Query<"GET /v2/bookings/{booking_id}">,
    options?: CallOptions,
  ): Promise<Booking> {
    const input = { path: { booking_id }, query };
    return (await this.client.call("GET /v2/bookings/{booking_id}", input, options)).data;
  }

  /** Throws VerificationRequired if the customer first has to confirm the e-mail address. */
  async create(body: Body<"POST /v2/bookings">, options?: CallOptions): Promise<MadeBooking> {
    const answer = await this.client.call("POST /v2/bookings", { body }, options);
    const made = answer.data as MadeBooking | Unverified; // 202 has no schema
    if ("verification" in made) {
      throw new VerificationRequired(made.reservation_id, new Date(made.expires_at));
    }
    return made;
  }

  /** Books what `create` held for a customer who had to confirm the e-mail address. */
  async verify(reservation_id: string, code: string, options?: CallOptions): Promise<MadeBooking> {
    const name = "POST /v2/bookings/reserve/{reservation_id}/verify";
    const input = { path: { reservation_id }, body: { code } };
    return (await this.client.call(name, input, options)).data as MadeBooking;
  }

  async update(
    booking_id: string,
    body: Body<"PUT /v2/bookings/{booking_id}">,
    options?: CallOptions,
  ): Promise<Booking> {
    const input = { path: { booking_id }, body };
    return (await this.client.call("PUT /v2/bookings/{booking_id}", input, options)).data;
  }

  async reschedule(
    booking_id: string,
    body: Body<"POST /v2/bookings/{booking_id}/reschedule">,
    options?: CallOptions,
  ): Promise<MadeBooking> {
    const name = "POST /v2/bookings/{booking_id}/reschedule";
    const answer = await this.client.call(name, { path: { booking_id }, body }, options);
    return answer.data as MadeBooking;
  }

  /** Applies an action of the booking's graph: `confirm`, `decline`, `complete`, ... */
  async apply(
    booking_id: string,
    action: Operations["PUT /v2/bookings/{booking_id}/{action}"]["path"]["action"],
    body?: Body<"PUT /v2/bookings/{booking_id}/{action}">,
    options?: CallOptions,
  ): Promise<Booking> {
    const input = { path: { booking_id, action }, body };
    return (await this.client.call("PUT /v2/bookings/{booking_id}/{action}", input, options)).data;
  }

  /** The same as `apply(id, "cancel", ...)`. */
  cancel(
    booking_id: string,
    body?: Body<"PUT /v2/bookings/{booking_id}/{action}">,
    options?: CallOptions,
  ): Promise<Booking> {
    return this.apply(booking_id, "cancel", body, options);
  }

  async delete(booking_id: string, options?: CallOptions): Promise<void> {
    await this.client.call("DELETE /v2/bookings/{booking_id}", { path: { booking_id } }, options);
  }

  /** Holds a time for some minutes: `create({reservation_id, ...})` uses it up. */
  async hold(
    body: Body<"POST /v2/bookings/reserve">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/bookings/reserve">> {
    return (await this.client.call("POST /v2/bookings/reserve", { body }, options)).data;
  }

  async release(reservation_id: string, options?: CallOptions): Promise<void> {
    const name = "DELETE /v2/bookings/reserve/{reservation_id}";
    await this.client.call(name, { path: { reservation_id } }, options);
  }
}

class Availability {
  constructor(private readonly client: Client) {}

  /** The free times. */
  async find(
    body: Body<"POST /v2/availability">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/availability">> {
    return (await this.client.call("POST /v2/availability", { body }, options)).data;
  }

  /** The days with free times. */
  async dates(
    body: Body<"POST /v2/availability/dates">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/availability/dates">> {
    return (await this.client.call("POST /v2/availability/dates", { body }, options)).data;
  }

  /** Why times are not free. */
  async explain(
    body: Body<"POST /v2/availability/explain">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/availability/explain">> {
    return (await this.client.call("POST /v2/availability/explain", { body }, options)).data;
  }
}

class Resources {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/resources">, options?: CallOptions): List<"GET /v2/resources"> {
    return this.client.list("GET /v2/resources", { query }, options);
  }

  async get(resource_id: string, options?: CallOptions): Promise<Content<"GET /v2/resources/{resource_id}">> {
    const input = { path: { resource_id } };
    return (await this.client.call("GET /v2/resources/{resource_id}", input, options)).data;
  }

  async create(
    body: Body<"POST /v2/resources">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/resources">> {
    return (await this.client.call("POST /v2/resources", { body }, options)).data;
  }

  async update(
    resource_id: string,
    body: Body<"PUT /v2/resources/{resource_id}">,
    options?: CallOptions,
  ): Promise<Content<"PUT /v2/resources/{resource_id}">> {
    const input = { path: { resource_id }, body };
    return (await this.client.call("PUT /v2/resources/{resource_id}", input, options)).data;
  }

  async delete(resource_id: string, options?: CallOptions): Promise<void> {
    await this.client.call("DELETE /v2/resources/{resource_id}", { path: { resource_id } }, options);
  }
}

class Projects {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/projects">, options?: CallOptions): List<"GET /v2/projects"> {
    return this.client.list("GET /v2/projects", { query }, options);
  }

  async get(project_id: string, options?: CallOptions): Promise<Content<"GET /v2/projects/{project_id}">> {
    const input = { path: { project_id } };
    return (await this.client.call("GET /v2/projects/{project_id}", input, options)).data;
  }

  async create(
    body: Body<"POST /v2/projects">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/projects">> {
    return (await this.client.call("POST /v2/projects", { body }, options)).data;
  }

  async update(
    project_id: string,
    body: Body<"PUT /v2/projects/{project_id}">,
    options?: CallOptions,
  ): Promise<Content<"PUT /v2/projects/{project_id}">> {
    const input = { path: { project_id }, body };
    return (await this.client.call("PUT /v2/projects/{project_id}", input, options)).data;
  }

  async delete(project_id: string, options?: CallOptions): Promise<void> {
    await this.client.call("DELETE /v2/projects/{project_id}", { path: { project_id } }, options);
  }
}

class Events {
  constructor(private readonly client: Client) {}

  list(query: Query<"GET /v2/events">, options?: CallOptions): List<"GET /v2/events"> {
    return this.client.list("GET /v2/events", { query }, options);
  }

  async get(event_id: string, options?: CallOptions): Promise<Content<"GET /v2/events/{event_id}">> {
    const input = { path: { event_id } };
    return (await this.client.call("GET /v2/events/{event_id}", input, options)).data;
  }

  async create(
    body: Body<"POST /v2/events">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/events">> {
    return (await this.client.call("POST /v2/events", { body }, options)).data;
  }

  async update(
    event_id: string,
    body: Body<"PUT /v2/events/{event_id}">,
    options?: CallOptions,
  ): Promise<Content<"PUT /v2/events/{event_id}">> {
    const input = { path: { event_id }, body };
    return (await this.client.call("PUT /v2/events/{event_id}", input, options)).data;
  }

  async delete(event_id: string, options?: CallOptions): Promise<void> {
    await this.client.call("DELETE /v2/events/{event_id}", { path: { event_id } }, options);
  }
}

class Customers {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/customers">, options?: CallOptions): List<"GET /v2/customers"> {
    return this.client.list("GET /v2/customers", { query }, options);
  }

  /** Everything that is stored about an e-mail address. */
  async export(email: string, options?: CallOptions): Promise<Content<"GET /v2/customers/export">> {
    const input = { query: { email } };
    return (await this.client.call("GET /v2/customers/export", input, options)).data;
  }

  async erase(email: string, options?: CallOptions): Promise<Content<"POST /v2/customers/erase">> {
    const input = { body: { email } };
    return (await this.client.call("POST /v2/customers/erase", input, options)).data;
  }
}

class Webhooks {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/webhooks">, options?: CallOptions): List<"GET /v2/webhooks"> {
    return this.client.list("GET /v2/webhooks", { query }, options);
  }

  async get(webhook_id: string, options?: CallOptions): Promise<Content<"GET /v2/webhooks/{webhook_id}">> {
    const input = { path: { webhook_id } };
    return (await this.client.call("GET /v2/webhooks/{webhook_id}", input, options)).data;
  }

  async create(
    body: Body<"POST /v2/webhooks">,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/webhooks">> {
    return (await this.client.call("POST /v2/webhooks", { body }, options)).data;
  }

  async update(
    webhook_id: string,
    body: Body<"PUT /v2/webhooks/{webhook_id}">,
    options?: CallOptions,
  ): Promise<Content<"PUT /v2/webhooks/{webhook_id}">> {
    const input = { path: { webhook_id }, body };
    return (await this.client.call("PUT /v2/webhooks/{webhook_id}", input, options)).data;
  }

  async delete(webhook_id: string, options?: CallOptions): Promise<void> {
    await this.client.call("DELETE /v2/webhooks/{webhook_id}", { path: { webhook_id } }, options);
  }

  /** A new secret: for 24 hours the service signs with both. */
  async rotate(
    webhook_id: string,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/webhooks/{webhook_id}/rotate">> {
    const input = { path: { webhook_id } };
    return (await this.client.call("POST /v2/webhooks/{webhook_id}/rotate", input, options)).data;
  }
}

class Deliveries {
  constructor(private readonly client: Client) {}

  list(query?: Query<"GET /v2/deliveries">, options?: CallOptions): List<"GET /v2/deliveries"> {
    return this.client.list("GET /v2/deliveries", { query }, options);
  }

  async get(delivery_id: string, options?: CallOptions): Promise<Content<"GET /v2/deliveries/{delivery_id}">> {
    const input = { path: { delivery_id } };
    return (await this.client.call("GET /v2/deliveries/{delivery_id}", input, options)).data;
  }

  /** Sends it again, with the same id. */
  async redeliver(
    delivery_id: string,
    options?: CallOptions,
  ): Promise<Content<"POST /v2/deliveries/{delivery_id}/redeliver">> {
    const name = "POST /v2/deliveries/{delivery_id}/redeliver";
    return (await this.client.call(name, { path: { delivery_id } }, options)).data;
  }
}

class Changes {
  constructor(private readonly transport: Transport) {}

  /** Every change of the app from a cursor on: iterate it, and store its `cursor`. */
  follow(options?: FollowOptions): ChangeFeed {
    return new ChangeFeed(this.transport, options);
  }
}
