// Written by `manage.py write_openapi`.

/** The input is under the action's name. `scope`: the affected bookings of a series, only `this` by default. `apply_to_bulked_bookings`: whether the action applies to the related bookings of a bulk request, to all or none; true by default. */
export type ActionBody = {
  scope?: "this" | "following" | "all" | null;
  apply_to_bulked_bookings?: boolean | null;
  cancel?: {
    message?: string | null;
  } | null;
  cancel_by_customer?: {
    message?: string | null;
  } | null;
  cancel_by_owner?: {
    message?: string | null;
  } | null;
  complete?: {
    message?: string | null;
  } | null;
  confirm?: {
    message?: string | null;
  } | null;
  create?: {
    message?: string | null;
  } | null;
  decline?: {
    message?: string | null;
  } | null;
  pay?: {
    message?: string | null;
  } | null;
  timeout?: {
    message?: string | null;
  } | null;
};

export type Address = {
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
};

export type App = {
  id: string;
  slug: string;
  name: string;
  /** Can't be changed. A test app sends e-mails only to its members. */
  mode: "live" | "test";
  settings: AppSettings;
  event_notifications: EventNotification[];
  created_at: Date;
  updated_at: Date;
  /** With include=signing_secret of GET /v2/app, for server keys and owners only: the secret that signs the calls of event notifications. */
  signing_secret?: string;
};

export type AppAnswer = {
  data: App;
};

export type AppInput = {
  name?: string;
  settings?: AppSettingsInput;
  event_notifications?: EventNotificationInput[];
};

export type AppPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: App[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

/** The known settings. Other keys are stored unchanged. */
export type AppSettings = {
  /** Nobody gets an e-mail about a booking. Webhooks are still called. */
  disable_emails: boolean;
  /** The sender's name in e-mails. Null: the app's name. */
  from_name?: string;
  /** The sender of e-mails, if the operator allows its domain (`SENDER_DOMAINS`). Otherwise e-mails come from the service's address, and replies go to this one. */
  from_email?: string;
  /** The contact for customers, in e-mails and on pages. */
  contact_name?: string;
  /** The reply address of e-mails, which also gets the e-mails about bookings of resources without an address. Null: the sender's address. */
  contact_email?: string;
  /** An address of your own client. */
  callback?: string;
  /** The only addresses to which links in e-mails and the consent pages of calendar providers can redirect. */
  redirect_urls?: string[];
  /** The IANA time zone of times that belong to no resource. */
  default_timezone?: string;
  /** The language of pages and e-mails. */
  language?: string;
  /** The colour of buttons and links on pages and in e-mails. It is darkened or lightened as far as it needs to be read. */
  accent_color?: string;
  /** A text at the top of booking pages. */
  cover_text?: string;
  /** The postal address, at the bottom of pages and e-mails. */
  address?: string;
  /** The imprint: a link at the bottom of pages and e-mails. */
  imprint_url?: string;
  /** The privacy notice: a link at the bottom of pages and e-mails. */
  privacy_url?: string;
  /** The effect of a stale calendar (not synced for too long). `warn` (the default): availability has a warning. `block`: the resource has no free time until the next sync. */
  stale_calendars?: "warn" | "block";
  /** The effect when the owner moves or removes a booking in a connected calendar. `warn` (the default): the booking is unchanged, and `provider_event` reports the change. `follow`: the booking is moved or cancelled. */
  external_edits?: "warn" | "follow";
  /** Attempts with public keys to make or move a booking, per client address and hour. All addresses of an IPv6 /64 network are one. 20 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_address_per_hour?: number;
  /** Bookings made with public keys, per e-mail address and day. A solved challenge lifts this limit. 10 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_email_per_day?: number;
  /** Upcoming bookings that one e-mail address can have to book once more. 20 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_open_bookings_per_email?: number;
  /** Bookings, moves and holds made with public keys, per minute, of all customers. A solved challenge lifts this limit. 120 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_app_per_minute?: number;
  /** E-mail addresses that can't book with public keys: 403. `*` stands for any text, as in `*@spam.example`. A `+tag` of a customer's address does not count. */
  blocked_customers?: string[];
  /** Proof of work of public keys. `altcha`: bookings, holds and moves need `challenge`, a solved challenge of GET /v2/challenge. `off` (the default): only above some limits. */
  public_challenge?: "off" | "altcha";
  /** How many e-mails, and how many webhook calls, are sent at once. The service has a default and a maximum (DELIVERY_APP_CAP, DELIVERY_APP_CAP_MAX). */
  delivery_cap?: number;
  /** Whether projects have a hosted page unless their own setting `published` says otherwise. True by default. */
  publish_projects?: boolean;
  /** Whether widget keys without `projects` may book resources that are in no project. False by default: widget keys book through a project. */
  public_resources?: boolean;
  /** Whether unknown keys in request bodies are 422, except with widget keys. False by default: the header `Service-Ignored` names them. */
  strict_bodies?: boolean;
};

export type AppSettingsInput = {
  /** Nobody gets an e-mail about a booking. Webhooks are still called. */
  disable_emails?: boolean | null;
  /** The sender's name in e-mails. Null: the app's name. */
  from_name?: string | null;
  /** The sender of e-mails, if the operator allows its domain (`SENDER_DOMAINS`). Otherwise e-mails come from the service's address, and replies go to this one. */
  from_email?: string | null;
  /** The contact for customers, in e-mails and on pages. */
  contact_name?: string | null;
  /** The reply address of e-mails, which also gets the e-mails about bookings of resources without an address. Null: the sender's address. */
  contact_email?: string | null;
  /** An address of your own client. */
  callback?: (string | null) | string;
  /** The only addresses to which links in e-mails and the consent pages of calendar providers can redirect. */
  redirect_urls?: string[] | null;
  /** The IANA time zone of times that belong to no resource. */
  default_timezone?: string | null;
  /** The language of pages and e-mails. */
  language?: "en" | "ar" | "de" | "es" | "fr" | "it" | "ja" | "nl" | "pl" | "pt-BR" | "sv";
  /** The colour of buttons and links on pages and in e-mails. It is darkened or lightened as far as it needs to be read. */
  accent_color?: string | null;
  /** A text at the top of booking pages. */
  cover_text?: string | null;
  /** The postal address, at the bottom of pages and e-mails. */
  address?: string | null;
  /** The imprint: a link at the bottom of pages and e-mails. */
  imprint_url?: string | null;
  /** The privacy notice: a link at the bottom of pages and e-mails. */
  privacy_url?: string | null;
  /** The effect of a stale calendar (not synced for too long). `warn` (the default): availability has a warning. `block`: the resource has no free time until the next sync. */
  stale_calendars?: "warn" | "block" | null;
  /** The effect when the owner moves or removes a booking in a connected calendar. `warn` (the default): the booking is unchanged, and `provider_event` reports the change. `follow`: the booking is moved or cancelled. */
  external_edits?: "warn" | "follow" | null;
  /** Attempts with public keys to make or move a booking, per client address and hour. All addresses of an IPv6 /64 network are one. 20 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_address_per_hour?: number | null;
  /** Bookings made with public keys, per e-mail address and day. A solved challenge lifts this limit. 10 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_email_per_day?: number | null;
  /** Upcoming bookings that one e-mail address can have to book once more. 20 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_open_bookings_per_email?: number | null;
  /** Bookings, moves and holds made with public keys, per minute, of all customers. A solved challenge lifts this limit. 120 by default, 0 = no limit. Above it: 429 `rate_limited`. */
  public_bookings_per_app_per_minute?: number | null;
  /** E-mail addresses that can't book with public keys: 403. `*` stands for any text, as in `*@spam.example`. A `+tag` of a customer's address does not count. */
  blocked_customers?: string[] | null;
  /** Proof of work of public keys. `altcha`: bookings, holds and moves need `challenge`, a solved challenge of GET /v2/challenge. `off` (the default): only above some limits. */
  public_challenge?: "off" | "altcha" | null;
  /** How many e-mails, and how many webhook calls, are sent at once. The service has a default and a maximum (DELIVERY_APP_CAP, DELIVERY_APP_CAP_MAX). */
  delivery_cap?: number | null;
  /** Whether projects have a hosted page unless their own setting `published` says otherwise. True by default. */
  publish_projects?: boolean | null;
  /** Whether widget keys without `projects` may book resources that are in no project. False by default: widget keys book through a project. */
  public_resources?: boolean | null;
  /** Whether unknown keys in request bodies are 422, except with widget keys. False by default: the header `Service-Ignored` names them. */
  strict_bodies?: boolean | null;
};

export type Attempt = {
  at: Date;
  /** HTTP status of a call, or the mail server's code. */
  response_code: number | null;
  seconds: number;
  error: string | null;
  /** The beginning of the response: 20 kB, in lists 1,000 characters. */
  excerpt: string | null;
};

/** A step of a visit. */
export type BookedStep = {
  name: string;
  start: Date;
  end: Date;
  resources: PublicResource[];
};

/** Seven fields and the parts in `include`. Responses to requests that create or change a booking also contain `resource_id`, `project_id`, `start` and `end`. */
export type Booking = {
  id: string;
  /** Its id in the client's own system. */
  external_id: string | null;
  state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  graph: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment";
  /** No action is possible. */
  completed: boolean;
  created_at: Date;
  updated_at: Date;
  resource_id?: string;
  project_id?: string | null;
  start?: Date;
  end?: Date;
  attributes?: BookingAttributes;
  event?: Event | PublicEvent;
  calendar?: Calendar;
  resource?: Resource | PublicResource;
  /** An alias of `resource`. */
  user?: Resource | PublicResource;
  /** Of a booking that needs several: all of them, in the order of the project's `requires`. Other bookings: `resource` alone. */
  resources?: Array<Resource | PublicResource>;
  /** Of a visit, in the order of their times; [] for other bookings. */
  steps?: BookedStep[];
  customers?: Customer[];
  project?: ProjectOfBooking | null;
  meta?: {
    [key: string]: unknown;
  };
  /** The internal note; null without one. Only with include=note. */
  note?: string | null;
  /** Whether the customer came; null if unknown. */
  outcome?: "attended" | "no_show" | null;
  /** The units of the resource, or seats, that it takes. */
  quantity?: number;
  /** The people who come; null if not given. */
  party_size?: number | null;
  /** The place of its seats, in a group with places. */
  place?: string | null;
  /** Oldest first. */
  logs?: LogEntry[];
  available_actions?: string[];
  /** By action: a signed link for the customer, valid until the end of the booking. `pay`: the link to the project's payment page while the payment is awaited. */
  customer_action_links?: {
    [key: string]: string;
  };
  event_notifications?: EventNotification[];
  /** For a seat: the group's booking. */
  owner_booking?: BookingEntry | null;
  /** The seats of a group in all states, ordered by creation; null for other bookings. */
  seats?: Seat[] | null;
  /** The other related bookings of the bulk request. */
  bulked_bookings?: BookingEntry[];
  series?: Series | null;
  /** In GET /v2/bookings/groups: no seat is free; else absent. */
  full?: boolean;
  conference?: Conference | null;
  provider_event?: ProviderEvent | null;
};

export type BookingAnswer = {
  data: Booking;
};

/** Widget keys see only start, end, what and where of `event_info`. */
export type BookingAttributes = {
  event_info: EventInfo;
  customer?: Customer | null;
  settings?: BookingSettings;
  /** The seats of a group; null for other bookings. */
  group_booking: GroupSeats | null;
};

export type BookingBody = {
  /** The project defines the defaults. Without a resource, the service chooses a free one. */
  project_id?: string | null;
  /** The booking goes into its first calendar. */
  resource_id?: string | null;
  calendar_id?: string | null;
  /** For a project with `requires`: the resources to take, by the name of the requirement: an id, or several to choose from. The service chooses the others. */
  resources?: {
    [key: string]: string | string[];
  } | null;
  /** What the booking requires, instead of the project's `requires`, or without a project. Not for widget keys. */
  requires?: Requirement[] | ({
    alternatives: Requirement[][];
  }) | null;
  /** The steps of a visit, as `requires`. */
  steps?: StepInput[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order?: "given" | "any" | null;
  /** A hold of POST /v2/bookings/reserve for this time. It can be used once. */
  reservation_id?: string | null;
  /** How many units of the resource's capacity, at most 100, or seats of the group to take together; 1 by default, with `reservation_id` as many as are held. With a widget key, at most the project's `max_quantity`. */
  quantity?: number | null;
  /** The people who come: only resources whose `party` contains it, the smallest first. The ranges of several resources add up. */
  party_size?: number | null;
  /** The place of the seats: required for a group with `places`. */
  place?: string | null;
  /** A solved challenge of GET /v2/challenge, for widget keys. */
  challenge?: string | null;
  /** `instant` by default. With a widget key, the project's graph. */
  graph?: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment" | null;
  /** Required for a seat in a group. */
  related?: Related | null;
  /** ISO 8601 with an offset, or wall time without one. Years 1970 to 2199. */
  start?: Date | string;
  /** ISO 8601 with an offset, or wall time without one. Years 1970 to 2199. */
  end?: Date | string;
  what?: string;
  where?: string | null;
  description?: string | null;
  invite?: boolean | null;
  participants?: string[] | null;
  /** The graph's start action by default. In the graph `instant`, `create` makes a draft, which does not block. */
  action?: "confirm" | "create" | null;
  customer?: CustomerInput;
  customers?: CustomerInput[];
  settings?: BookingSettingsInput | null;
  /** Replaces the list of project or app; `[]` means none. */
  event_notifications?: EventNotificationInput[] | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  } | null;
  /** Its id in your own system: at most one booking of the app has it. Not for widget keys. */
  external_id?: string | null;
  /** An internal note. Only server keys and members read and write it; it is in no e-mail, calendar or webhook call. */
  note?: string | null;
  /** An RFC 5545 rule such as `FREQ=WEEKLY;COUNT=52`: one booking per occurrence, on the resource's wall clock. DAILY to YEARLY with COUNT or UNTIL, at most 366 occurrences within 10 years. `start` is the first occurrence. */
  recurrence?: string | null;
  /** If an occurrence can't be booked: fail the series (the default) or skip the occurrence. */
  on_conflict?: "fail" | "skip" | null;
  /** Whether the customers get an e-mail about the new booking. */
  notify_customer_by_email?: MailSwitch | null;
  /** Whether the owner gets an e-mail about the new booking. */
  notify_owner_by_email?: MailSwitch | null;
  /** The nested form of the keys. Different values in both forms are 422. */
  event?: BookingEvent;
};

/** The booking of GET /v2/bookings/:id, and the change that the call is about. */
export type BookingCall = {
  id: string;
  /** Its id in the client's own system. */
  external_id: string | null;
  state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  graph: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment";
  /** No action is possible. */
  completed: boolean;
  created_at: Date;
  updated_at: Date;
  resource_id?: string;
  project_id?: string | null;
  start?: Date;
  end?: Date;
  attributes?: BookingAttributes;
  event?: Event | PublicEvent;
  calendar?: Calendar;
  resource?: Resource | PublicResource;
  /** An alias of `resource`. */
  user?: Resource | PublicResource;
  /** Of a booking that needs several: all of them, in the order of the project's `requires`. Other bookings: `resource` alone. */
  resources?: Array<Resource | PublicResource>;
  /** Of a visit, in the order of their times; [] for other bookings. */
  steps?: BookedStep[];
  customers?: Customer[];
  project?: ProjectOfBooking | null;
  meta?: {
    [key: string]: unknown;
  };
  /** The internal note; null without one. Only with include=note. */
  note?: string | null;
  /** Whether the customer came; null if unknown. */
  outcome?: "attended" | "no_show" | null;
  /** The units of the resource, or seats, that it takes. */
  quantity?: number;
  /** The people who come; null if not given. */
  party_size?: number | null;
  /** The place of its seats, in a group with places. */
  place?: string | null;
  /** Oldest first. */
  logs?: LogEntry[];
  available_actions?: string[];
  /** By action: a signed link for the customer, valid until the end of the booking. `pay`: the link to the project's payment page while the payment is awaited. */
  customer_action_links?: {
    [key: string]: string;
  };
  event_notifications?: EventNotification[];
  /** For a seat: the group's booking. */
  owner_booking?: BookingEntry | null;
  /** The seats of a group in all states, ordered by creation; null for other bookings. */
  seats?: Seat[] | null;
  /** The other related bookings of the bulk request. */
  bulked_bookings?: BookingEntry[];
  series?: Series | null;
  /** In GET /v2/bookings/groups: no seat is free; else absent. */
  full?: boolean;
  conference?: Conference | null;
  provider_event?: ProviderEvent | null;
  change: Change;
  /** GET /v2/changes lists this change, and perhaps some before it, after the cursor. */
  cursor: string;
};

export type BookingChange = {
  /** The first customer. */
  customer?: CustomerChange;
  /** Matched by `id`, else by position. Customers can't be added or removed. */
  customers?: CustomerChange[];
  what?: string;
  where?: string | null;
  description?: string | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  };
  /** Its id in your own system: at most one booking of the app has it. Not for widget keys. */
  external_id?: string | null;
  /** An internal note. Only server keys and members read and write it; it is in no e-mail, calendar or webhook call. */
  note?: string | null;
  /** Whether the customer came. From one hour before the start. Null clears it. */
  outcome?: "attended" | "no_show" | null;
  /** How many units or seats the booking takes from now on: 409 if they are not free. */
  quantity?: number;
  /** Of a group. */
  settings?: GroupChange;
};

/** The default values of bookings of this project. */
export type BookingDefaults = {
  /** The workflow of bookings. */
  graph?: string;
  /** The default title of bookings. */
  what?: string;
  /** The default place of bookings: an address, a room or a link. `{booking_id}`, `{start}` and `{end}` are filled in. */
  where?: string;
  /** The default description of bookings, on pages, in e-mails and in calendars. */
  description?: string;
  /** The page to which e-mails link for another time. Null: the service's page. */
  rescheduling_url?: string;
  /** The payment page for graphs with payment; the service adds `booking_id` to the query, without a signature. `settings.pay_url` takes precedence. */
  payment_url?: string;
};

export type BookingDefaultsInput = {
  /** The workflow of bookings. */
  graph?: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment" | null;
  /** The default title of bookings. */
  what?: string | null;
  /** The default place of bookings: an address, a room or a link. `{booking_id}`, `{start}` and `{end}` are filled in. */
  where?: string | null;
  /** The default description of bookings, on pages, in e-mails and in calendars. */
  description?: string | null;
  /** The page to which e-mails link for another time. Null: the service's page. */
  rescheduling_url?: string | null;
  /** The payment page for graphs with payment; the service adds `booking_id` to the query, without a signature. `settings.pay_url` takes precedence. */
  payment_url?: string | null;
};

/** The seven fields of a booking in lists. */
export type BookingEntry = {
  id: string;
  /** Its id in the client's own system. */
  external_id: string | null;
  state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  graph: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment";
  /** No action is possible. */
  completed: boolean;
  created_at: Date;
  updated_at: Date;
};

export type BookingEvent = {
  /** ISO 8601 with an offset, or wall time without one. Years 1970 to 2199. */
  start?: Date | string;
  /** ISO 8601 with an offset, or wall time without one. Years 1970 to 2199. */
  end?: Date | string;
  what?: string;
  where?: string | null;
  calendar_id?: string | null;
  description?: string | null;
  invite?: boolean | null;
  participants?: string[] | null;
};

export type BookingPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Booking[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type BookingSettings = {
  /** The booking may overlap others, but blocks later bookings. False by default. */
  allow_double_bookings: boolean;
  /** The rules of resource and project apply. True by default with a project and for a widget key. */
  enforce_availability: boolean;
  /** The latest time before a group's start at which customers can cancel their seats. */
  min_cancel_time?: string;
  /** The latest time before a group's start at which seats can be booked. */
  min_booking_time?: string;
  /** The earliest time before a group's start at which seats can be booked. */
  max_booking_time?: string;
};

export type BookingSettingsInput = {
  /** The booking may overlap others, but blocks later bookings. False by default. */
  allow_double_bookings?: boolean | null;
  /** The rules of resource and project apply. True by default with a project and for a widget key. */
  enforce_availability?: boolean | null;
  /** Required for a group (graph `group_owner`) without `places`. */
  max_seats?: number | null;
  /** Of a group: the number of seats by the name of their place, such as `{"stalls": 100, "balcony": 50}`. `max_seats` is their sum. */
  places?: {
    [key: string]: number | null;
  } | null;
  /** The latest time before a group's start at which customers can cancel their seats. */
  min_cancel_time?: string | number | null;
  /** The latest time before a group's start at which seats can be booked. */
  min_booking_time?: string | number | null;
  /** The earliest time before a group's start at which seats can be booked. */
  max_booking_time?: string | number | null;
};

export type BulkChanges = {
  /** For the log and the e-mails of all bookings: the `message` of each new booking, and of each action without one of its own. */
  message?: string | null;
  /** Do not attempt the bookings after the first failure. */
  stop_on_first_error?: boolean | null;
  /** Roll back all bookings if one fails. */
  delete_all_on_error?: boolean | null;
  bookings: Array<{
    id: string;
    meta?: {
      [key: string]: unknown;
    };
    action?: "cancel" | "cancel_by_customer" | "cancel_by_owner" | "complete" | "confirm" | "create" | "decline" | "pay" | "timeout";
    /** The affected bookings of a series, as for a single action. */
    scope?: "this" | "following" | "all" | null;
    /** Apply the action to the related bookings. False by default here. */
    apply_to_bulked_bookings?: boolean | null;
    cancel?: {
      message?: string | null;
    } | null;
    cancel_by_customer?: {
      message?: string | null;
    } | null;
    cancel_by_owner?: {
      message?: string | null;
    } | null;
    complete?: {
      message?: string | null;
    } | null;
    confirm?: {
      message?: string | null;
    } | null;
    create?: {
      message?: string | null;
    } | null;
    decline?: {
      message?: string | null;
    } | null;
    pay?: {
      message?: string | null;
    } | null;
    timeout?: {
      message?: string | null;
    } | null;
  }>;
};

/** A booking, or why there is none: one of the two. */
export type BulkOutcome = {
  /** The status that a single request would have returned. */
  status: number;
  booking?: Booking;
  error?: ErrorOfOne;
};

export type BulkOutcomeList = {
  data: BulkOutcome[];
};

export type Calendar = {
  id: string;
  resource_id: string;
  name: string;
  description: string;
  backgroundcolor: string;
  foregroundcolor: string;
  /** `service` for a calendar of the service, otherwise the kind of provider. */
  provider: string;
  /** The calendar's URL at the provider; for a feed only its server, because its URL is a secret. */
  provider_id: string | null;
  /** The access at the provider; null for a calendar of the service. */
  provider_access: "reader" | "writer" | null;
  /** The resource's bookings are written to this calendar. */
  provider_primary: boolean;
  /** The calendar is connected and synced. */
  provider_sync: boolean;
  /** The permission of a person at Google or Microsoft that the calendar uses; null for other providers. */
  grant_id: string | null;
  /** The e-mail address of this person's account. */
  account: string | null;
  /** The start of the last successful sync. */
  synced_at: Date | null;
  /** Why syncs fail; null without a problem. */
  problem: Problem | null;
  /** The progress of the current sync, in objects. */
  progress: Progress | null;
  /** The number of unreadable objects in the last sync. */
  unread: number;
  created_at: Date;
  updated_at: Date;
};

export type CalendarAnswer = {
  data: Calendar;
};

/** A connected calendar whose syncs have stopped. */
export type CalendarCall = {
  /** The value of `Service-Event`. */
  kind: string;
  /** The calendar of GET /v2/calendars/:id; times in UTC. */
  calendar: Calendar;
  /** Why it is no longer synced: `calendar.problem`. */
  problem: Problem;
  /** GET /v2/changes lists later changes after it. */
  cursor: string;
};

/** Shown once. The service stores only a hash. */
export type CalendarFeed = {
  /** The URL for calendar programs. Anyone with this URL can read the calendar. */
  url: string | null;
  /** The secret part of the URL. */
  token: string | null;
  /** Only in the response to a repeated request with an Idempotency-Key: the secret was in the first one. */
  secret_shown?: boolean;
  /** Whether the feed shows the names and contact data of customers. */
  details: boolean;
};

export type CalendarFeedAnswer = {
  data: CalendarFeed;
};

export type CalendarInput = {
  /** The address of a server, a calendar or a feed. The address of a feed is secret. */
  address?: string;
  username?: string | null;
  /** Never shown. */
  password?: string | null;
  name?: string;
  description?: string | null;
  backgroundcolor?: string | null;
  foregroundcolor?: string | null;
  provider_primary?: boolean;
};

export type CalendarPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Calendar[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type CalendarTest = {
  ok: boolean;
  /** Why the calendar can't be used; null without a problem. */
  problem: "unauthorized" | "not_a_calendar" | "several_calendars" | "no_write_access" | "address_refused" | "unreachable" | "rate_limited" | "server_error" | "bad_answer" | "too_large" | "secret_unreadable" | "grant_ended" | "not_permitted" | "client_refused" | "token_refused" | null;
  /** The problem as a text for people. */
  text: string;
  /** The access at the provider; null if unknown. */
  access: "reader" | "writer" | null;
  seconds: number;
};

export type CalendarTestAnswer = {
  data: CalendarTest;
};

export type Challenge = {
  algorithm: "SHA-256";
  /** Hexadecimal. */
  challenge: string;
  maxnumber: number;
  salt: string;
  /** Hexadecimal. */
  signature: string;
};

/** The official ALTCHA widget reads the members at the top, other clients those of `data`. */
export type ChallengeAnswer = {
  algorithm: "SHA-256";
  /** Hexadecimal. */
  challenge: string;
  maxnumber: number;
  salt: string;
  /** Hexadecimal. */
  signature: string;
  data: Challenge;
};

/** The change that a call is about. */
export type Change = {
  /** The value of `Service-Event`. */
  kind: string;
  at: Date;
  /** `update` for changed fields. */
  action: string;
  from_state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  actor: string;
  source: "api" | "widget" | "admin" | "link" | "timer" | "calendar" | "mail" | "mcp";
  message: string;
  /** null unless the booking was moved. */
  previous: PreviousTime | null;
};

export type ChangeNotices = {
  value: Array<{
    subscriptionId: string;
    clientState: string;
    /** Of the subscription: missed, reauthorizationRequired, subscriptionRemoved. */
    lifecycleEvent?: string;
    resourceData?: {
      [key: string]: unknown;
    };
    [key: string]: unknown;
  }>;
  [key: string]: unknown;
};

export type ChangesPage = {
  data: ListedChange[];
  /** The cursor of the next request. */
  next_cursor: string;
  /** Whether the next request gets more at once. */
  has_more: boolean;
};

/** The video call of a booking that takes place; null without one. */
export type Conference = {
  provider: "meet" | "teams" | "jitsi" | "template";
  /** The link; null until the connected calendar has made it. */
  url: string | null;
  /** Why no link is on its way: `no_calendar`, the booking is not written to a connected calendar of the provider; `calendar_problem`, that calendar has a `problem`; `not_offered`, its account has no such video calls. */
  problem: "no_calendar" | "calendar_problem" | "not_offered" | null;
};

/** The video call of bookings. The link is made for the booking and stays with it. */
export type ConferenceSettings = {
  /** `meet`, `teams`: the calendar to which the booking is written makes the link: a connected calendar of Google for `meet`, of Microsoft 365 for `teams`. `jitsi`: a room with a random name. `template`: an address of your own. */
  provider?: "meet" | "teams" | "jitsi" | "template";
  /** An https address. For `template`: with `{booking_id}`, which is replaced by the id of the booking (of a seat: of the group). For `jitsi`: your own server; the random name of the room is added at its end, or replaces `{booking_id}`. Null: `https://meet.jit.si`. Others do not use it. */
  template?: string;
};

export type ConferenceSettingsInput = {
  /** `meet`, `teams`: the calendar to which the booking is written makes the link: a connected calendar of Google for `meet`, of Microsoft 365 for `teams`. `jitsi`: a room with a random name. `template`: an address of your own. */
  provider?: "meet" | "teams" | "jitsi" | "template" | null;
  /** An https address. For `template`: with `{booking_id}`, which is replaced by the id of the booking (of a seat: of the group). For `jitsi`: your own server; the random name of the room is added at its end, or replaces `{booking_id}`. Null: `https://meet.jit.si`. Others do not use it. */
  template?: string | null;
};

export type ConsentUrl = {
  /** The provider's consent page: send the person there within ten minutes. */
  url: string;
};

export type ConsentUrlAnswer = {
  data: ConsentUrl;
};

/** A rule for when time is open, on the wall clock of each resource: one key, the rule's name, with its parameters. Allow rules of the same kind in one list form a union (Monday, Tuesday). Different kinds and different lists form an intersection (weekdays, 9 to 17). Block rules apply last. Without rules, time is always open. If `start` is later than `end`, the rule runs over midnight. One list applies its rules in this order: weekly hours (allow and block rules of days and hours), plus `open_recurring`, less `block_holidays`; the windows of `replace_day` on its date; cut by `allow_period`; plus `open_period`; less `block_period` and `block_recurring`. A list that opens time and allows none is closed otherwise. */
export type Constraint = {
  allow_hours?: {
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    start: number | string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    end: number | string;
    /** The rule's name in explanations. */
    name?: string;
  };
  allow_day?: {
    /** Upper or lower case. */
    day: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  allow_day_and_time?: {
    /** Upper or lower case. */
    day: string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    start: number | string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    end: number | string;
    /** The rule's name in explanations. */
    name?: string;
  };
  allow_period?: {
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    start: string;
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    end: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  allow_weekdays?: {
    /** The rule's name in explanations. */
    name?: string;
  } | unknown[];
  allow_weekends?: {
    /** The rule's name in explanations. */
    name?: string;
  } | unknown[];
  block_hours?: {
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    start: number | string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    end: number | string;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_day?: {
    /** Upper or lower case. */
    day: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_day_and_time?: {
    /** Upper or lower case. */
    day: string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    start: number | string;
    /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
    end: number | string;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_period?: {
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    start: string;
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    end: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_weekdays?: {
    /** The rule's name in explanations. */
    name?: string;
  } | unknown[];
  block_weekends?: {
    /** The rule's name in explanations. */
    name?: string;
  } | unknown[];
  open_period?: {
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    start: string;
    /** Wall-clock time, a date (its midnight), or an instant with its offset. */
    end: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  open_recurring?: {
    /** The wall-clock time of the first occurrence, or a date (its midnight). */
    start: string;
    /** At most 7 days. */
    duration: string;
    /** RFC 5545, DAILY to YEARLY; COUNT and UNTIL may be absent. */
    rrule: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_recurring?: {
    /** The wall-clock time of the first occurrence, or a date (its midnight). */
    start: string;
    /** At most 7 days. */
    duration: string;
    /** RFC 5545, DAILY to YEARLY; COUNT and UNTIL may be absent. */
    rrule: string;
    /** The rule's name in explanations. */
    name?: string;
  };
  replace_day?: {
    /** A local date. */
    date: string;
    /** The open hours of the date; none: closed. */
    windows: Array<{
      /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
      start: number | string;
      /** A full hour as a number, or a time as text. 24 is midnight at the end of the day. */
      end: number | string;
    }>;
    /** The rule's name in explanations. */
    name?: string;
  };
  block_holidays?: {
    /** ISO 3166-1, two letters. */
    country: string;
    /** A part of the country. */
    subdivision?: string;
    /** Kinds of holidays. Absent: public ones. */
    categories?: string[];
    /** The rule's name in explanations. */
    name?: string;
  };
};

export type Count = {
  date: string;
  count: number;
};

export type CountList = {
  data: Count[];
  /** Only with stale calendars; never with a widget key. */
  warnings?: Warning[];
};

export type Credential = {
  id: string;
  kind: "server" | "widget" | "resource";
  /** The beginning of the key, which identifies it. */
  prefix: string;
  /** The full key: always for widget keys, for other keys only in the response of POST. */
  key?: string | null;
  /** Only in the response to a repeated request with an Idempotency-Key: the secret was in the first one. */
  secret_shown?: boolean;
  description: string;
  /** The resource of a key of the kind `resource`; null for keys of the app. */
  resource_id: string | null;
  /** The only projects that a server key or widget key may use. Null: any, published or not. */
  projects: string[] | null;
  /** The only web sites that may use a widget key: requests with another `Origin` are 403. Null: any. */
  origins: string[] | null;
  /** What a server key may do. Null: everything. */
  scopes: Array<"availability:read" | "bookings:read" | "bookings:write" | "people:read" | "settings:read" | "settings:write" | "keys:write"> | null;
  /** The only networks from which a server key may be used: requests from other addresses are 403 `address_not_allowed`. Null: any. */
  addresses: string[] | null;
  /** In a body, it must be in the future. Absent or null: the key never expires. */
  expires_at: Date | null;
  revoked_at: Date | null;
  /** Rounded to the minute. */
  last_used_at: Date | null;
  created_at: Date;
  /** Using the key does not change this time. */
  updated_at: Date;
};

export type CredentialAnswer = {
  data: Credential;
};

export type CredentialPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Credential[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

/** A customer's data at the time of the booking, and the customer's answer to the invitation. */
export type Customer = {
  id: string;
  /** The customer's id in your own system: the same in all bookings of a customer. Of a widget key, it goes to `meta`. */
  external_id: string | null;
  name: string;
  email: string;
  phone: string;
  voip: string;
  timezone: string;
  /** Free keys, and all other keys that the client sent. */
  meta: {
    [key: string]: unknown;
  };
  /** The customer's answer to the invitation. A move to another time resets it. */
  response: "needs_action" | "accepted" | "tentative" | "declined";
  /** When the customer answered; null: no answer. */
  responded_at: Date | null;
  /** Whether the answer was found in the connected calendar or came by e-mail; null: no answer. */
  source: "calendar" | "mail" | null;
};

export type CustomerChange = {
  /** The customer's id. Absent: the customer at this position. */
  id?: string;
  /** The customer's id in your own system: the same in all bookings of a customer. Of a widget key, it goes to `meta`. */
  external_id?: string | null;
  name?: string;
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email?: string;
  phone?: string | null;
  voip?: string | null;
  /** An IANA time zone. */
  timezone?: string | null;
  /** The language of e-mails to the customer; stored in `meta`. */
  language?: "en" | "ar" | "de" | "es" | "fr" | "it" | "ja" | "nl" | "pl" | "pt-BR" | "sv";
  /** Free keys, and all other keys that the client sent. */
  meta?: {
    [key: string]: unknown;
  } | null;
};

export type CustomerField = {
  title?: string;
  format?: string;
  required?: boolean;
  readonly?: boolean;
  /** Any value. */
  prefilled?: unknown;
  enum?: string[];
  split_name?: boolean;
  /** The order of the fields. Fields without a position: name and contact data come first, others last. */
  position?: number;
};

export type CustomerInput = {
  /** The customer's id in your own system: the same in all bookings of a customer. Of a widget key, it goes to `meta`. */
  external_id?: string | null;
  name: string;
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
  phone?: string | null;
  voip?: string | null;
  /** An IANA time zone. */
  timezone?: string | null;
  /** The language of e-mails to the customer; stored in `meta`. */
  language?: "en" | "ar" | "de" | "es" | "fr" | "it" | "ja" | "nl" | "pl" | "pt-BR" | "sv";
  /** Free keys, and all other keys that the client sent. */
  meta?: {
    [key: string]: unknown;
  } | null;
};

export type CustomerNote = {
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
  /** Empty or null removes it. */
  note: string | null;
};

/** One of the `customers` of a booking. */
export type CustomerOfBooking = {
  id: string;
  /** The customer's id in your own system: the same in all bookings of a customer. Of a widget key, it goes to `meta`. */
  external_id: string | null;
  name: string;
  email: string;
  phone: string;
  voip: string;
  timezone: string;
  /** Free keys, and all other keys that the client sent. */
  meta: {
    [key: string]: unknown;
  };
  /** The customer's answer to the invitation. A move to another time resets it. */
  response: "needs_action" | "accepted" | "tentative" | "declined";
  /** When the customer answered; null: no answer. */
  responded_at: Date | null;
  /** Whether the answer was found in the connected calendar or came by e-mail; null: no answer. */
  source: "calendar" | "mail" | null;
  booking_id: string;
};

/** The bookings' customers, without erased ones. One of several bookings counts in each. */
export type Customers = {
  resource?: Named;
  project?: Named | null;
  /** Of resources, as they are now. */
  tag?: string;
  /** Its Monday. */
  week?: string;
  /** Its first day. */
  month?: string;
  /** Whose address is in no earlier booking of the app. */
  new: number;
  /** All others. */
  returning: number;
  /** New of all. */
  new_rate: number | null;
};

export type CustomersReport = {
  data: Customers[];
  /** The first day. */
  from: string;
  /** The day after the last one. */
  to: string;
  /** The app's zone: its days. */
  timezone: string;
  /** Changes before are counted; null: nothing is counted yet. */
  counted_until: string | null;
};

export type AvailableDate = {
  date: string;
  resources: string[];
};

export type DateList = {
  data: AvailableDate[];
  /** Only with stale calendars; never with a widget key. */
  warnings?: Warning[];
};

/** One e-mail, call or calendar write, with every attempt. */
export type Delivery = {
  id: string;
  type: "email" | "webhook" | "calendar";
  /** The booking's new state, `rescheduled`, `reassigned` (a move of the resources alone), `unassigned` (to the former resource), `reminder` for an event notification, `test`, `webhook_disabled`, `new_key`, `new_owner`, `new_device`, `calendar_problem`, or `write` for a calendar that was connected after the booking was created. */
  kind: string;
  booking_id: string | null;
  /** null for e-mails, event notifications and calendar writes. */
  webhook_id: string | null;
  /** The recipient of an e-mail; null for calls and calendar writes. */
  recipient: "customer" | "owner" | null;
  state: "scheduled" | "sending" | "delivered" | "failed" | "cancelled" | "skipped" | "expired";
  /** The reason for the state. Of a scheduled call also until when its server gets no calls, after ten failures in a row. */
  reason: string | null;
  due_at: Date;
  /** The next attempt, or the end of the current lease; null for a final state. */
  next_at: Date | null;
  /** Oldest first. */
  attempts: Attempt[];
  created_at: Date;
  updated_at: Date;
  /** Only for a single delivery: the body of the call, which is the booking at the change. null for e-mails, calendar writes, and calls that are rendered when they are due. For a caller that may not act for customers, `[link]` is in place of each signed link. */
  payload?: {
    [key: string]: unknown;
  } | null;
};

export type DeliveryAnswer = {
  data: Delivery;
};

export type DeliveryPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Delivery[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type Description = {
  [key: string]: unknown;
};

export type EmailSettings = {
  recipient: "customer" | "owner";
  subject?: string;
};

/** What one kind of mail says. In a body: texts, or null for all three. */
export type EmailTemplate = {
  slug: "tentative_owner" | "tentative_customer" | "confirmed_customer" | "confirmed_owner" | "declined_customer" | "cancelled_customer" | "cancelled_owner" | "cancelled_by_customer_owner" | "cancelled_by_customer_customer" | "unpaid_customer" | "rescheduled_customer" | "rescheduled_owner" | "reassigned_customer" | "reassigned_owner" | "unassigned_owner" | "updated_customer" | "updated_owner" | "conference_customer" | "conference_owner" | "new_times_customer" | "message_customer" | "reminder_customer" | "reminder_owner";
  subject: string;
  text: string;
  /** A whole HTML document. */
  html: string;
  /** Whether the app has its own template. */
  custom: boolean;
  /** null for the default template. */
  updated_at: Date | null;
};

export type EmailTemplateAnswer = {
  data: EmailTemplate;
};

export type EmailTemplateInput = {
  subject?: string | null;
  text?: string | null;
  /** A whole HTML document. */
  html?: string | null;
};

export type EmailTemplateList = {
  data: EmailTemplate[];
};

export type EmbeddedPage = {
  id: string;
  slug: string;
  name: string;
  resources?: string[];
  availability?: ProjectAvailability;
  availability_constraints?: Constraint[];
  booking: BookingDefaults;
  /** The fields of the booking form, by key. */
  customer_fields: {
    [key: string]: CustomerField;
  };
  /** The project's settings, merged over defaults for the calendar and `localization`. */
  ui: {
    [key: string]: unknown;
  };
  translations?: {
    [key: string]: ProjectTexts;
  };
  /** The length of a hold in seconds. Null: 30. */
  reservation_time?: number;
};

export type EmbeddedPageAnswer = {
  data: EmbeddedPage;
};

/** Nothing. */
export type Empty = {
  [key: string]: unknown;
};

export type EmptyAnswer = {
  data: Empty;
};

export type Erased = {
  bookings: number;
  log_entries: number;
  unverified_bookings: number;
  deliveries: number;
  suppressions: number;
};

export type ErasedAnswer = {
  data: Erased;
};

/** Why the service refuses a request. Which members it has besides `error`, `code` and `request_id` depends on `code`. `Accept: application/problem+json` adds those of RFC 9457. */
export type ErrorBody = {
  /** One sentence for a person. */
  error: string;
  /** A stable code for programs. */
  code: "malformed" | "unauthenticated" | "second_factor_required" | "forbidden" | "address_not_allowed" | "not_found" | "method_not_allowed" | "not_acceptable" | "request_timeout" | "slot_taken" | "not_available" | "action_not_allowed" | "policy" | "hold_expired" | "group_full" | "in_use" | "already_exists" | "outdated" | "idempotency_in_progress" | "cursor_expired" | "precondition_failed" | "too_large" | "unsupported_media_type" | "misdirected" | "idempotency_mismatch" | "invalid" | "not_attempted" | "not_kept" | "rate_limited" | "internal" | "unavailable";
  /** With `invalid`: the errors by their place, a dotted path in the body (`event_notifications.0.when.unit`), or the name of a query parameter or header. With `rate_limited` and a widget key: `challenge` if the same request passes at once with a solved challenge. */
  errors?: {
    [key: string]: string[];
  };
  /** With `not_found`: what was not found; `Page` for an unknown path. */
  model?: string;
  /** With `slot_taken`: the times that overlap. With `in_use` for a `capacity`: the first time at which more is booked. */
  conflicts?: Span[];
  /** With `not_available`: the rules that the time breaks. */
  reasons?: Reason[];
  /** With `slot_taken` and `not_available`: the next free times of the same length within 14 days, within the applicable rules. */
  alternatives?: Span[];
  /** For a series: all occurrences that can't be booked. */
  occurrences?: FailedOccurrence[];
  /** With `action_not_allowed`: the booking's state. */
  state?: string;
  /** With `action_not_allowed`: the possible actions. */
  available_actions?: string[];
  /** With `policy`: its name in the project's settings. */
  policy?: string;
  /** With `policy`: its value in the settings of project or group; null without a value. */
  limit?: string | number | null;
  /** With `in_use` for an event: the booking of the event. */
  booking_id?: string;
  /** For a calendar that can't be connected: the code of the problem. */
  problem?: string;
  /** The value of the header Service-Request-Id. */
  request_id: string;
};

/** The error that a request of its own would have got, without `request_id`. Paths start at the top of the body. */
export type ErrorOfOne = {
  /** One sentence for a person. */
  error: string;
  /** A stable code for programs. */
  code: "malformed" | "unauthenticated" | "second_factor_required" | "forbidden" | "address_not_allowed" | "not_found" | "method_not_allowed" | "not_acceptable" | "request_timeout" | "slot_taken" | "not_available" | "action_not_allowed" | "policy" | "hold_expired" | "group_full" | "in_use" | "already_exists" | "outdated" | "idempotency_in_progress" | "cursor_expired" | "precondition_failed" | "too_large" | "unsupported_media_type" | "misdirected" | "idempotency_mismatch" | "invalid" | "not_attempted" | "not_kept" | "rate_limited" | "internal" | "unavailable";
  /** With `invalid`: the errors by their place, a dotted path in the body (`event_notifications.0.when.unit`), or the name of a query parameter or header. With `rate_limited` and a widget key: `challenge` if the same request passes at once with a solved challenge. */
  errors?: {
    [key: string]: string[];
  };
  /** With `not_found`: what was not found; `Page` for an unknown path. */
  model?: string;
  /** With `slot_taken`: the times that overlap. With `in_use` for a `capacity`: the first time at which more is booked. */
  conflicts?: Span[];
  /** With `not_available`: the rules that the time breaks. */
  reasons?: Reason[];
  /** With `slot_taken` and `not_available`: the next free times of the same length within 14 days, within the applicable rules. */
  alternatives?: Span[];
  /** For a series: all occurrences that can't be booked. */
  occurrences?: FailedOccurrence[];
  /** With `action_not_allowed`: the booking's state. */
  state?: string;
  /** With `action_not_allowed`: the possible actions. */
  available_actions?: string[];
  /** With `policy`: its name in the project's settings. */
  policy?: string;
  /** With `policy`: its value in the settings of project or group; null without a value. */
  limit?: string | number | null;
  /** With `in_use` for an event: the booking of the event. */
  booking_id?: string;
  /** For a calendar that can't be connected: the code of the problem. */
  problem?: string;
};

export type Event = {
  id: string;
  calendar_id: string;
  what: string;
  where: string;
  description: string;
  start: Date;
  end: Date;
  /** An all-day event: start and end are local midnights of the resource. */
  allDay: boolean;
  rsvp: string;
  participants: string[];
  /** Blocks the time. */
  busy: boolean;
  provider_id: string | null;
  created_at: Date;
  updated_at: Date;
};

export type EventAnswer = {
  data: Event;
};

export type EventInfo = {
  start: Date;
  end: Date;
  what: string;
  where: string;
  description?: string;
  calendar_id?: string;
  invite?: boolean;
  participants?: string[];
};

export type EventInput = {
  what?: string;
  where?: string | null;
  description?: string | null;
  start?: Date | string;
  end?: Date | string | null;
  /** An all-day event: start and end are local midnights of the resource. */
  allDay?: boolean;
  /** Start and end are dates; the end is exclusive. Without an end: one day. */
  all_day?: boolean;
  rsvp?: string | null;
  participants?: string[];
  /** Blocks the time. */
  busy?: boolean;
};

/** A reminder at a time relative to the booking's start. */
export type EventNotification = {
  type: "email" | "webhook";
  settings: EmailSettings | WebhookSettings;
  when: RelativeTime;
};

export type EventNotificationInput = {
  type: "email" | "webhook";
  /** email: `recipient` and `subject`; webhook: `url`, `method` and `expected_response_code`. Keys of the other type are ignored. */
  settings?: {
    recipient?: "customer" | "owner";
    subject?: string;
    url?: string;
    /** Upper or lower case. */
    method?: string;
    /** Absent: any 2xx. */
    expected_response_code?: number | string | null;
  };
  when: RelativeTimeInput;
};

export type EventPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Event[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type Explanation = {
  resource: SlotResource;
  turn?: Turn;
  /** No time in the range satisfies all rules. */
  never_open: boolean;
  /** The same in words, where it is so. */
  text?: string;
  segments: Segment[];
};

export type ExplanationList = {
  data: Explanation[];
  /** Only with stale calendars; never with a widget key. */
  warnings?: Warning[];
  /** Only with `requires`. */
  requirements?: RequirementTimes[];
  /** Only with `steps`: when each step of a visit could start, seen alone. */
  steps?: StepTimes[];
};

export type Extension = {
  /** The length in seconds. The default is the project's `reservation_time`, or 30. With a widget key, the default is also the maximum. */
  reservation_time?: number | null;
  /** The `reservation_id` of POST /v2/bookings/reserve. */
  reservation_id: string;
};

export type FailedOccurrence = {
  start: Date;
  end: Date;
  /** Why not. */
  reason: "slot_taken" | "not_available";
};

export type Findtime = {
  resource_ids?: string[];
  resources?: string[];
  calendar_ids?: string[];
  project_id?: string | null;
  /** A list of constraints, or the older filters: a union in `or`, an intersection in `and`. */
  filters?: Constraint[] | ({
    or?: Array<{
      [key: string]: unknown;
    }> | null;
    and?: Array<{
      [key: string]: unknown;
    }> | null;
  });
  /** A list of constraints, or the older filters: a union in `or`, an intersection in `and`. */
  constraints?: Constraint[] | ({
    or?: Array<{
      [key: string]: unknown;
    }> | null;
    and?: Array<{
      [key: string]: unknown;
    }> | null;
  });
  /** An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the next midnight), or a duration. Days, weeks and months use the wall clock of the resource. With `round_to_nearest_hour`, relative times are rounded up to the full hour. */
  start?: Date | string;
  /** An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the next midnight), or a duration. Days, weeks and months use the wall clock of the resource. With `round_to_nearest_hour`, relative times are rounded up to the full hour. */
  future?: Date | string;
  /** From 1 minute to 366 days; a day has 24 hours. */
  length?: string;
  /** From 0 seconds to 366 days; a day has 24 hours. */
  buffer?: string | number;
  sort?: "asc" | "desc";
  ignore_all_day_events?: boolean;
  all_solutions?: boolean;
  no_day_span?: boolean;
};

export type FindtimeQueries = {
  queries: Findtime[];
};

/** The time between a step and the one before. */
export type Gap = {
  /** At least. The default is none. */
  min?: string;
  /** At most. The default is `min`. */
  max?: string | null;
};

export type GapInput = {
  /** At least. The default is none. */
  min?: string | number;
  /** At most. The default is `min`. */
  max?: string | number | null;
};

export type GroupChange = {
  /** At least the seats that are taken. */
  max_seats?: number;
  /** All places of the group, each with at least the seats that are taken there. `max_seats` becomes their sum. */
  places?: {
    [key: string]: number | null;
  };
};

export type GroupSeats = {
  max_seats: number;
  /** The number of booked seats. */
  current_seats: number;
  /** The seats of each place. Absent without places. */
  places?: {
    [key: string]: number;
  };
};

export type Health = {
  status: "ok";
};

export type Hold = {
  reservation_id: string;
  start: Date;
  end: Date;
  /** In mode mutual, the first held resource. */
  resource: Resource | PublicResource;
  /** The held units of the resource, or seats. */
  quantity: number;
  /** The place of held seats. */
  place: string | null;
  /** The expiry, unless the hold is used or extended. */
  expires_at: Date;
};

export type HoldAnswer = {
  data: Hold;
};

export type HoldBody = {
  /** The project defines the defaults. Without a resource, the service chooses a free one. */
  project_id?: string | null;
  /** The booking goes into its first calendar. */
  resource_id?: string | null;
  calendar_id?: string | null;
  /** For a project with `requires`: the resources to take, by the name of the requirement: an id, or several to choose from. The service chooses the others. */
  resources?: {
    [key: string]: string | string[];
  } | null;
  /** What the booking requires, instead of the project's `requires`, or without a project. Not for widget keys. */
  requires?: Requirement[] | ({
    alternatives: Requirement[][];
  }) | null;
  /** The steps of a visit, as `requires`. */
  steps?: StepInput[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order?: "given" | "any" | null;
  /** How many units of the resource's capacity, at most 100, or seats of the group to take together; 1 by default, with `reservation_id` as many as are held. With a widget key, at most the project's `max_quantity`. */
  quantity?: number | null;
  /** The people who come: only resources whose `party` contains it, the smallest first. The ranges of several resources add up. */
  party_size?: number | null;
  /** The place of the seats: required for a group with `places`. */
  place?: string | null;
  /** A solved challenge of GET /v2/challenge, for widget keys. */
  challenge?: string | null;
  /** The group whose seats are held; without `start` and `end`. */
  related?: Related | null;
  /** The length in seconds. The default is the project's `reservation_time`, or 30. With a widget key, the default is also the maximum. */
  reservation_time?: number | null;
  /** Required without `related`. */
  start?: Date | string;
  /** Required without `related`. */
  end?: Date | string;
  /** As in the later booking. */
  settings?: BookingSettingsInput | null;
};

export type HostedPage = {
  id: string;
  slug: string;
  name: string;
  resources?: string[];
  availability?: ProjectAvailability;
  availability_constraints?: Constraint[];
  booking: BookingDefaults;
  /** The fields of the booking form, by key. */
  customer_fields: {
    [key: string]: CustomerField;
  };
  /** The project's settings, merged over defaults for the calendar and `localization`. */
  ui: {
    [key: string]: unknown;
  };
  translations?: {
    [key: string]: ProjectTexts;
  };
  /** The length of a hold in seconds. Null: 30. */
  reservation_time?: number;
  /** A widget key for this project, for the page's requests. */
  app_key: string;
};

export type HostedPageAnswer = {
  data: HostedPage;
};

export type HtmlPage = string;

export type Icalendar = string;

/** How long before their start the bookings were made, as it is now. */
export type LeadTime = {
  resource?: Named;
  project?: Named | null;
  /** Of resources, as they are now. */
  tag?: string;
  /** Its Monday. */
  week?: string;
  /** Its first day. */
  month?: string;
  /** All but drafts and groups. */
  bookings: number;
  average_days: number | null;
  /** Less than a day before, or entered afterwards. */
  lead_1_day: number;
  /** 1 to 3 days before. */
  lead_3_days: number;
  /** 3 to 7 days before. */
  lead_1_week: number;
  /** 1 to 2 weeks before. */
  lead_2_weeks: number;
  /** 2 to 4 weeks before. */
  lead_4_weeks: number;
  /** 4 weeks before, or longer. */
  lead_longer: number;
};

export type LeadTimeReport = {
  data: LeadTime[];
  /** The first day. */
  from: string;
  /** The day after the last one. */
  to: string;
  /** The app's zone: its days. */
  timezone: string;
  /** Changes before are counted; null: nothing is counted yet. */
  counted_until: string | null;
};

/** A change of an object. */
export type ListedChange = {
  /** The change's number in the app. */
  id: string;
  /** GET /v2/changes lists the changes after this one. */
  cursor: string;
  type: "booking" | "event" | "resource" | "project" | "schedule" | "calendar" | "customer" | "webhook" | "delivery";
  /** Of a booking: the action in its log, or `deleted` or `erased`. Of a delivery: its final state. Of others: `created`, `updated` or `deleted`. */
  action: string;
  at: Date;
  /** Who made the change; null: it is not stored. */
  actor: string | null;
  /** The entry point; null: it is not stored. */
  source: "api" | "widget" | "admin" | "link" | "timer" | "calendar" | "mail" | "mcp" | null;
  object_id: string;
  /** The object as GET shows it now; null if it is deleted. */
  object: Booking | Event | Resource | Project | Schedule | Calendar | CustomerOfBooking | Webhook | Delivery | null;
};

export type LogEntry = {
  from_state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  to_state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  action: string;
  actor: string;
  source: "api" | "widget" | "admin" | "link" | "timer" | "calendar" | "mail" | "mcp";
  message: string;
  created_at: Date;
};

export type LogIn = {
  kind: "access" | "resource";
  /** The id of the account or resource. */
  id: string;
  name: string;
  email: string;
  /** The password of HTTP Basic, with `email` as the user name. Shown once. */
  api_token: string;
  expires_at: Date;
};

export type LogInAnswer = {
  data: LogIn;
};

export type LogInInput = {
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
  password: string;
  /** A code of the authenticator app, or a recovery code, of an account with a second factor. Each works once. */
  code?: string | null;
  /** What the access token of an account may do. Null: everything. */
  scopes?: Array<"availability:read" | "bookings:read" | "bookings:write" | "people:read" | "settings:read" | "settings:write" | "keys:write"> | null;
};

export type MailSwitch = {
  /** False: no e-mail. */
  enabled?: boolean | null;
};

export type MaxStarts = {
  quantity: number | null;
  per: string | null;
};

export type MaxStartsInput = {
  quantity?: number | null;
  /** From 1 minute to 1 day; a day has 24 hours. */
  per?: string | null;
};

/** A person with a role in the app, or an invitation that is still open. */
export type Member = {
  /** Of the person, or of the invitation: accepting an invitation ends its id. */
  id: string;
  email: string;
  role: "viewer" | "editor" | "owner";
  state: "active" | "invited";
  /** When the invitation's link expires; null: a member. */
  expires_at: Date | null;
};

export type MemberAnswer = {
  data: Member;
};

export type MemberPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Member[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type Metrics = string;

/** An object with its present name. */
export type Named = {
  id: string;
  name: string;
};

export type NewApp = {
  slug: string;
  name: string;
  /** Can't be changed. A test app sends e-mails only to its members. */
  mode?: "live" | "test";
  settings?: AppSettingsInput;
  event_notifications?: EventNotificationInput[];
};

export type NewBulk = {
  /** For the log and the e-mails of all bookings: the `message` of each new booking, and of each action without one of its own. */
  message?: string | null;
  /** Do not attempt the bookings after the first failure. */
  stop_on_first_error?: boolean | null;
  /** Roll back all bookings if one fails. */
  delete_all_on_error?: boolean | null;
  bookings: BookingBody[];
  /** An action on one booking applies to all of them. */
  relate_bookings?: boolean | null;
};

export type NewCalendar = {
  /** The address of a server, a calendar or a feed. The address of a feed is secret. */
  address?: string;
  username?: string | null;
  /** Never shown. */
  password?: string | null;
  resource_id: string;
  /** Required for a calendar of the service. Otherwise the default is the name at the provider. */
  name?: string;
  description?: string | null;
  backgroundcolor?: string | null;
  foregroundcolor?: string | null;
  /** Absent: `service`, a calendar of the service. */
  provider?: "service" | "caldav" | "ics" | "google" | "microsoft";
  /** Whether the resource's bookings are written to this calendar. The default is true for the resource's first writable calendar. */
  provider_primary?: boolean;
  /** Required for `google` and `microsoft`: the grant of another calendar of the account. `address` is then the name or id of a calendar of the account; absent: its main calendar. For a new account, use POST /calendars/connect. */
  grant_id?: string;
};

export type NewCalendarFeed = {
  /** Whether the feed shows the names and contact data of customers. */
  details?: boolean;
};

export type NewConsent = {
  provider: "google" | "microsoft";
  /** Whose calendar is connected. */
  resource_id?: string;
  /** A connected calendar whose permission has ended; instead of `resource_id`. */
  calendar_id?: string;
  /** Where the person returns to, with `calendar_id` or `error` in the query. One of the app's `redirect_urls`, with any query. */
  redirect_url: string;
  /** The name or id of one of the account's calendars. Absent: its main calendar. */
  name?: string;
  /** Whether the resource's bookings are written to this calendar. The default is true for the resource's first writable calendar. */
  provider_primary?: boolean;
};

export type NewCredential = {
  kind: "server" | "widget" | "resource";
  description?: string | null;
  /** The resource of a key of the kind `resource`; null for keys of the app. */
  resource_id?: string | null;
  /** The only projects that a server key or widget key may use. Null: any, published or not. */
  projects?: string[] | null;
  /** The only web sites that may use a widget key: requests with another `Origin` are 403. Null: any. */
  origins?: string[] | null;
  /** What a server key may do. Null: everything. */
  scopes?: Array<"availability:read" | "bookings:read" | "bookings:write" | "people:read" | "settings:read" | "settings:write" | "keys:write"> | null;
  /** The only networks from which a server key may be used: requests from other addresses are 403 `address_not_allowed`. Null: any. */
  addresses?: string[] | null;
  /** In a body, it must be in the future. Absent or null: the key never expires. */
  expires_at?: Date | string | null;
};

export type NewEvent = {
  calendar_id: string;
  what: string;
  where?: string | null;
  description?: string | null;
  start: Date | string;
  end?: Date | string | null;
  /** An all-day event: start and end are local midnights of the resource. */
  allDay?: boolean;
  /** Start and end are dates; the end is exclusive. Without an end: one day. */
  all_day?: boolean;
  rsvp?: string | null;
  participants?: string[];
  /** Blocks the time. */
  busy?: boolean;
};

export type NewMember = {
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
  role?: "viewer" | "editor" | "owner";
};

export type NewProject = {
  /** Its id in your own system: at most one project of the app has it. */
  external_id?: string | null;
  slug?: string;
  name: string;
  /** Ids, or complete resources with include=resources. */
  resources?: string[];
  /** Each booking takes a different resource for each requirement (`count` of them). `resources` is then derived. Not with `mode`. */
  requires?: Requirement[] | ({
    alternatives: Requirement[][];
  }) | null;
  /** Each booking is a visit of several steps, instead of `requires`. `resources` is then derived. Not with `mode`, and `length` is not used. */
  steps?: StepInput[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order?: "given" | "any" | null;
  availability?: ProjectAvailabilityInput;
  availability_constraints?: Constraint[];
  booking?: BookingDefaultsInput;
  /** The fields of the booking form, by key. Null removes a field. */
  customer_fields?: {
    [key: string]: CustomerField | null;
  };
  /** Free keys, at most 50 and 16 kB as JSON. */
  ui?: {
    [key: string]: unknown;
  };
  /** The project's texts in further languages, by language: on the booking page, on other pages for customers, and in e-mails to customers. */
  translations?: {
    [key: string]: ProjectTextsInput | null;
  };
  /** Null: the app's. */
  event_notifications?: EventNotificationInput[] | null;
  /** An alias of `event_notifications`, which takes precedence. */
  reminders?: EventNotificationInput[] | null;
  settings?: ProjectSettingsInput;
  /** The length of a hold in seconds. Null: 30. */
  reservation_time?: number | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  };
};

export type NewProviderClient = {
  /** As the provider shows it. */
  client_id: string;
  /** Never shown. */
  client_secret: string;
};

export type NewResource = {
  /** Its id in your own system: at most one resource of the app has it. */
  external_id?: string | null;
  name: string;
  first_name?: string | null;
  last_name?: string | null;
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email?: string | null;
  image?: (string | null) | string;
  /** The IANA zone of the resource's rules. */
  timezone: string;
  /** The schedule under the resource's own rules. Null removes it. */
  schedule_id?: string | null;
  tags?: string[];
  /** So many bookings may overlap: 12 for a pool of twelve. A number below what is booked ahead: 409 `in_use`. */
  capacity?: number;
  /** How many people it suits, such as a table: bookings and queries with `party_size` take a resource whose range contains it, or several whose sums do. Null: any number. */
  party?: PartyInput | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  };
  /** The password for POST /v2/auth. Null removes it. A change ends the tokens of earlier log-ins. */
  password?: string | null;
  availability_constraints?: Constraint[];
};

export type NewSchedule = {
  name: string;
  availability_constraints?: Constraint[];
};

export type NewWebhook = {
  url: string;
  /** Upper or lower case. */
  method?: string;
  /** null: any. */
  graph?: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment" | null;
  /** Empty: all states. A move matches `rescheduled` and the booking's current state. */
  states?: Array<"initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner" | "rescheduled">;
  /** Only calls of these kinds (values of `Service-Event`). Empty: all except `booking.reassigned`, `booking.updated`, `booking.response`, `calendar.problem`, and those of resources, projects and deliveries. A change of resources alone is `booking.rescheduled` for a webhook that does not name `booking.reassigned`. */
  kinds?: Array<"booking.initialized" | "booking.confirmed" | "booking.cancelled" | "booking.cancelled_by_customer" | "booking.completed" | "booking.tentative" | "booking.declined" | "booking.paid" | "booking.unpaid" | "booking.cancelled_by_owner" | "booking.rescheduled" | "booking.reassigned" | "booking.updated" | "booking.response" | "calendar.problem" | "resource.created" | "resource.updated" | "resource.deleted" | "project.created" | "project.updated" | "project.deleted" | "delivery.failed">;
  /** `standard`: the body is `{type, timestamp, data}` as in Standard Webhooks. `thin`: `{kind, id, cursor}` alone. null: the object, with `change`. */
  format?: "standard" | "thin" | null;
  /** The only status that counts as success; null: any 2xx. */
  expected_response_code?: number | string | null;
  active?: boolean;
  description?: string | null;
};

/** A change of a resource or a project, or a delivery that failed or expired. */
export type ObjectCall = {
  /** The change's number in the app. */
  id: string;
  /** GET /v2/changes lists the changes after this one. */
  cursor: string;
  type: "booking" | "event" | "resource" | "project" | "schedule" | "calendar" | "customer" | "webhook" | "delivery";
  /** Of a booking: the action in its log, or `deleted` or `erased`. Of a delivery: its final state. Of others: `created`, `updated` or `deleted`. */
  action: string;
  at: Date;
  /** Who made the change; null: it is not stored. */
  actor: string | null;
  /** The entry point; null: it is not stored. */
  source: "api" | "widget" | "admin" | "link" | "timer" | "calendar" | "mail" | "mcp" | null;
  object_id: string;
  /** The object as GET shows it now; null if it is deleted. */
  object: Booking | Event | Resource | Project | Schedule | Calendar | CustomerOfBooking | Webhook | Delivery | null;
  /** The value of `Service-Event`. */
  kind: string;
};

export type Occurrence = {
  start: Date;
  end: Date;
  booking_id?: string;
  reason?: string;
};

/** What has become of the bookings. */
export type Outcomes = {
  resource?: Named;
  project?: Named | null;
  /** Of resources, as they are now. */
  tag?: string;
  /** Its Monday. */
  week?: string;
  /** Its first day. */
  month?: string;
  /** All but drafts and groups: their seats count. */
  bookings: number;
  /** That take place or have taken place. */
  kept: number;
  /** By staff. */
  cancelled: number;
  cancelled_by_customer: number;
  /** Requests that were declined, or had no answer in time. */
  declined: number;
  /** Whose payment did not come in time. */
  unpaid: number;
  /** That wait for an answer or a payment. */
  pending: number;
  /** By `outcome`. */
  attended: number;
  /** By `outcome`. */
  no_show: number;
  /** Cancelled, by whomever, of those kept and cancelled. */
  cancellation_rate: number | null;
  /** No-shows of those kept. */
  no_show_rate: number | null;
};

export type OutcomesReport = {
  data: Outcomes[];
  /** The first day. */
  from: string;
  /** The day after the last one. */
  to: string;
  /** The app's zone: its days. */
  timezone: string;
  /** Changes before are counted; null: nothing is counted yet. */
  counted_until: string | null;
};

export type Party = {
  min: number | null;
  max: number | null;
};

export type PartyInput = {
  min?: number | null;
  max?: number | null;
};

export type PasswordForm = {
  password: string;
  again: string;
};

export type PasswordReset = {
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email: string;
};

/** All customers with the same e-mail address. */
export type Person = {
  email: string;
  /** The id in your own system. */
  external_id: string | null;
  name: string;
  phone: string;
  timezone: string;
  bookings: number;
  /** The bookings that have not ended and are not completed. */
  upcoming: number;
  /** When the oldest booking was made. */
  first_booking_at: Date;
  /** When the newest booking was made. */
  last_booking_at: Date;
  /** The internal note on the customer; null without one. */
  note: string | null;
};

export type PersonExport = {
  /** The requested address. */
  email: string;
  /** The internal note on the customer. */
  note: string | null;
  /** Complete bookings with `logs`, with only this customer. */
  bookings: Booking[];
  /** Other events that contain the address, with only this participant. */
  events: Event[];
  /** What was typed for bookings that wait for the code of an e-mail, or were abandoned in the last day. */
  unverified_bookings: Array<{
    [key: string]: unknown;
  }>;
  /** As in GET /deliveries/:id, with `content`: the data of the e-mail, or the URL of the event notification. */
  deliveries: Array<{
    [key: string]: unknown;
  }>;
  /** Why the address gets no e-mails, or no reminders. */
  suppressions: Array<{
    [key: string]: unknown;
  }>;
};

export type PersonExportAnswer = {
  data: PersonExport;
};

export type PersonPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Person[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type Preview = {
  subject?: string | null;
  text?: string | null;
  /** A whole HTML document. */
  html?: string | null;
  booking_id?: string | null;
};

/** A resource that a booking had before a move. */
export type PreviousResource = {
  id: string;
  name: string;
  /** The name of the requirement that it met; null without. */
  requirement: string | null;
};

/** The time and the resources of a booking before a move. */
export type PreviousTime = {
  start: Date;
  end: Date;
  /** Of the main resource. */
  resource_id: string;
  /** The former resources, the main one first; null if the move kept them. */
  resources: PreviousResource[] | null;
};

export type Problem = {
  /** A stable code for programs. */
  code: string;
  /** A text for people. */
  text: string;
  since: Date;
};

export type Progress = {
  done: number;
  total: number;
};

export type Project = {
  id: string;
  /** Its id in your own system: at most one project of the app has it. */
  external_id: string | null;
  slug: string;
  name: string;
  /** Ids, or complete resources with include=resources. */
  resources: Array<string | Resource>;
  /** Each booking takes a different resource for each requirement (`count` of them). `resources` is then derived. Not with `mode`. */
  requires: string | null;
  /** Each booking is a visit of several steps, instead of `requires`. `resources` is then derived. Not with `mode`, and `length` is not used. */
  steps: Step[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order: "given" | "any" | null;
  availability: ProjectAvailability;
  availability_constraints: Constraint[];
  booking: BookingDefaults;
  /** The fields of the booking form, by key. */
  customer_fields: {
    [key: string]: CustomerField;
  };
  ui: {
    [key: string]: unknown;
  };
  /** The project's texts in further languages, by language: on the booking page, on other pages for customers, and in e-mails to customers. */
  translations: {
    [key: string]: ProjectTexts;
  };
  /** Null: the app's. */
  event_notifications: EventNotification[] | null;
  settings: ProjectSettings;
  /** The length of a hold in seconds. Null: 30. */
  reservation_time: number | null;
  meta: {
    [key: string]: unknown;
  };
  created_at: Date;
  updated_at: Date;
  /** With include=payment_key, for server keys and owners only: the key in base64 that signs payment links. */
  payment_key?: string;
};

export type ProjectAnswer = {
  data: Project;
};

/** The default parameters of availability queries for this project. Absent parameters have the general default. */
export type ProjectAvailability = {
  /** The earliest start of a slot: the minimum notice. An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the next midnight), or a duration. Days, weeks and months use the wall clock of the resource. With `round_to_nearest_hour`, relative times are rounded up to the full hour. */
  from?: string;
  /** `roundrobin_random`: one free resource per slot, at random. `roundrobin_prioritized`: the first free resource per slot, in the given order. `roundrobin_fair`: the free resource that is furthest behind its share of the project's bookings. `mutual`: slots when all resources are free. `exclusive`: slots when at least one resource is free, with all free resources. `all_free`: another name of `exclusive`. */
  mode?: "roundrobin_random" | "roundrobin_prioritized" | "roundrobin_fair" | "mutual" | "exclusive" | "all_free";
  /** Shares of the bookings in the mode `roundrobin_fair`, by the id of the resource. Without an entry: 1. 0: no bookings by turn. */
  weights?: {
    [key: string]: number;
  };
  /** In the mode `roundrobin_fair`, bookings made before this instant do not count. Null: the project's making. Without an offset: UTC. */
  calibrate_from?: string;
  /** The length of a slot, `1 hour` by default. Null: complete free intervals. */
  length?: string | null;
  /** The lengths that a query or a booking may choose from. `length` is one of them; without it, the first is the default. */
  lengths?: string[];
  /** The latest end of a slot: the booking window. The same values as `from`, at most 366 days after it. */
  to?: string;
  /** Sets both `buffer_before` and `buffer_after`; each may still be given. */
  buffer?: string;
  /** Free time before a booking. Between two bookings lies at least the larger of the earlier one's `buffer_after` and the later one's `buffer_before`. A booking keeps the buffers that it was made with; an event without a booking has those of the query. */
  buffer_before?: string;
  /** Free time after a booking; see `buffer_before`. */
  buffer_after?: string;
  /** The distance between starts, counted from the opening times of the day. Absent: slots follow each other from the start of each free interval. */
  timeslot_increments?: string;
  /** Rules for when bookings may start. With `start_window` or `end_window`, the time between need not be open, such as a rental over night: it must be free and outside of blocking rules, and allowing rules do not count. Only of a project, and in the query of server keys. */
  start_window?: Constraint[];
  /** Rules for when bookings may end: in their windows, or at the end of one. See `start_window`. */
  end_window?: Constraint[];
  /** At most so many bookings of the project start within any time of this length, whatever their resources. Bookings that block and holds count, each with its `quantity`. */
  max_starts?: MaxStarts;
  /** Rounds a relative `from` up to the full hour; true by default. */
  round_to_nearest_hour?: boolean;
  /** All-day events do not block time. */
  ignore_all_day_events?: boolean;
};

export type ProjectAvailabilityInput = {
  /** The earliest start of a slot: the minimum notice. An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the next midnight), or a duration. Days, weeks and months use the wall clock of the resource. With `round_to_nearest_hour`, relative times are rounded up to the full hour. */
  from?: Date | string | null;
  /** `roundrobin_random`: one free resource per slot, at random. `roundrobin_prioritized`: the first free resource per slot, in the given order. `roundrobin_fair`: the free resource that is furthest behind its share of the project's bookings. `mutual`: slots when all resources are free. `exclusive`: slots when at least one resource is free, with all free resources. `all_free`: another name of `exclusive`. */
  mode?: "roundrobin_random" | "roundrobin_prioritized" | "roundrobin_fair" | "mutual" | "exclusive" | "all_free" | null;
  /** Shares of the bookings in the mode `roundrobin_fair`, by the id of the resource. Without an entry: 1. 0: no bookings by turn. */
  weights?: {
    [key: string]: number;
  } | null;
  /** In the mode `roundrobin_fair`, bookings made before this instant do not count. Null: the project's making. Without an offset: UTC. */
  calibrate_from?: Date | string | null;
  /** The length of a slot, `1 hour` by default. Null: complete free intervals. */
  length?: string | null;
  /** The lengths that a query or a booking may choose from. `length` is one of them; without it, the first is the default. */
  lengths?: string[] | null;
  /** The latest end of a slot: the booking window. The same values as `from`, at most 366 days after it. */
  to?: Date | string | null;
  /** Sets both `buffer_before` and `buffer_after`; each may still be given. */
  buffer?: string | number | null;
  /** Free time before a booking. Between two bookings lies at least the larger of the earlier one's `buffer_after` and the later one's `buffer_before`. A booking keeps the buffers that it was made with; an event without a booking has those of the query. */
  buffer_before?: string | number | null;
  /** Free time after a booking; see `buffer_before`. */
  buffer_after?: string | number | null;
  /** The distance between starts, counted from the opening times of the day. Absent: slots follow each other from the start of each free interval. */
  timeslot_increments?: string | null;
  /** Rules for when bookings may start. With `start_window` or `end_window`, the time between need not be open, such as a rental over night: it must be free and outside of blocking rules, and allowing rules do not count. Only of a project, and in the query of server keys. */
  start_window?: Constraint[] | null;
  /** Rules for when bookings may end: in their windows, or at the end of one. See `start_window`. */
  end_window?: Constraint[] | null;
  /** At most so many bookings of the project start within any time of this length, whatever their resources. Bookings that block and holds count, each with its `quantity`. */
  max_starts?: MaxStartsInput | null;
  /** Rounds a relative `from` up to the full hour; true by default. */
  round_to_nearest_hour?: boolean | null;
  /** All-day events do not block time. */
  ignore_all_day_events?: boolean | null;
};

export type ProjectInput = {
  /** Its id in your own system: at most one project of the app has it. */
  external_id?: string | null;
  slug?: string;
  name?: string;
  /** Ids, or complete resources with include=resources. */
  resources?: string[];
  /** Each booking takes a different resource for each requirement (`count` of them). `resources` is then derived. Not with `mode`. */
  requires?: Requirement[] | ({
    alternatives: Requirement[][];
  }) | null;
  /** Each booking is a visit of several steps, instead of `requires`. `resources` is then derived. Not with `mode`, and `length` is not used. */
  steps?: StepInput[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order?: "given" | "any" | null;
  availability?: ProjectAvailabilityInput;
  availability_constraints?: Constraint[];
  booking?: BookingDefaultsInput;
  /** The fields of the booking form, by key. Null removes a field. */
  customer_fields?: {
    [key: string]: CustomerField | null;
  };
  /** Free keys, at most 50 and 16 kB as JSON. */
  ui?: {
    [key: string]: unknown;
  };
  /** The project's texts in further languages, by language: on the booking page, on other pages for customers, and in e-mails to customers. */
  translations?: {
    [key: string]: ProjectTextsInput | null;
  };
  /** Null: the app's. */
  event_notifications?: EventNotificationInput[] | null;
  /** An alias of `event_notifications`, which takes precedence. */
  reminders?: EventNotificationInput[] | null;
  settings?: ProjectSettingsInput;
  /** The length of a hold in seconds. Null: 30. */
  reservation_time?: number | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  };
};

export type ProjectOfBooking = {
  id: string;
  slug: string;
  name: string;
  availability: ProjectAvailability;
  booking: BookingDefaults;
  /** The fields of the booking form, by key. */
  customer_fields: {
    [key: string]: CustomerField;
  };
  ui: {
    [key: string]: unknown;
  };
  settings: ProjectSettings;
  meta: {
    [key: string]: unknown;
  };
  created_at: Date;
  updated_at: Date;
  /** With include=project.resources. */
  resources?: Resource[];
};

export type ProjectPage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Project[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

/** Policies apply to widget keys and to actions of customers, but not to server keys. `max_reschedules` counts moves by the customer. `max_per_day`, `max_per_week` and `max_per_month` apply to everyone while availability is enforced; they count a resource's blocking bookings, completed bookings and holds. `max_per_customer_per_day` and `max_open_per_customer` apply to everyone, too, and to every seat of a group. */
export type ProjectSettings = {
  /** Bookings may overlap others; they still block time. */
  allow_double_bookings?: boolean;
  /** Bookings must keep to opening hours and limits; those of public callers always must. */
  enforce_availability?: boolean;
  /** Tentative bookings block time. */
  pending_blocks?: boolean;
  /** A request of the graph `confirm_decline` that is not answered for so long is declined, with the usual e-mails. Null: requests do not expire. */
  pending_expires?: string;
  /** How long before the start customers can still cancel. Later: 409 `policy`. */
  min_cancel_time?: string;
  /** How long before the start customers can still move a booking. Later: 409 `policy`. */
  min_reschedule_time?: string;
  /** Moves of a booking by the customer. */
  max_reschedules?: number;
  /** What happens if a customer declines the invitation in a calendar program. `note` (the default): the answer is stored. `cancel`: it also cancels the booking like the action `cancel_by_customer`, if the customer is the only one or has a seat of a group. */
  guest_declines?: "note" | "cancel";
  /** Bookings of a resource per day in its time zone. */
  max_per_day?: number;
  /** Bookings of a resource per ISO week (Monday to Sunday) in its time zone. */
  max_per_week?: number;
  /** Bookings of a resource per calendar month in its time zone. */
  max_per_month?: number;
  /** Bookings of an e-mail address per local day of the resource, without cancelled, declined and unpaid bookings. One more: 409 `policy`. Not checked when PUT changes the address of a booking. */
  max_per_customer_per_day?: number;
  /** Bookings of an e-mail address that have not ended. One more: 409 `policy`. Not checked when PUT changes the address of a booking. */
  max_open_per_customer?: number;
  /** Query the connected calendars directly before a booking is created or moved, for at most 3 seconds. If a calendar is busy: 409 `slot_taken`. If a calendar does not respond in time, its stored events count. */
  check_external?: boolean;
  /** Whether the project has a hosted page. Null: the app's `publish_projects`. */
  published?: boolean;
  /** The number of customers that a booking with a widget key can have; 1 by default. */
  public_customers?: number;
  /** The units or seats that a widget key can book or hold at once; 1 by default. */
  max_quantity?: number;
  /** Widget keys may ask with `include=remaining` how many units are free. */
  show_remaining?: boolean;
  /** What a widget key needs to move a booking. `link` (the default): the `signature` of a link in an e-mail. `id`: the booking's id. */
  public_reschedule?: "link" | "id";
  /** Customers can choose the resource on the hosted page; with `requires`, that of the requirement with this name (true: of the first). Not in mode mutual. */
  choose_resource?: string;
  /** Where the hosted page leads after a booking; the service adds `booking_id` to the query. Null: the page shows the booking. */
  redirect_url?: string;
  /** The payment page for graphs with payment, with the placeholders `{booking_id}`, `{start}`, `{until}` (the deadline) and `{signature}`; the service adds `booking_id` and `signature` to the query if they are absent. Without it and without `booking.payment_url`, a project with payment can't be published. */
  pay_url?: string;
  /** The only web sites that may show the hosted page in a frame. Null: any. */
  embed_origins?: string[];
  /** Bookings with widget keys wait for the code of an e-mail to the customer: POST /v2/bookings answers 202. */
  verify_email?: boolean;
  /** The language of pages and e-mails. Null: the app's language. */
  language?: string;
  /** The video call of new bookings. Null: none. */
  conference?: ConferenceSettings;
};

export type ProjectSettingsInput = {
  /** Bookings may overlap others; they still block time. */
  allow_double_bookings?: boolean | null;
  /** Bookings must keep to opening hours and limits; those of public callers always must. */
  enforce_availability?: boolean | null;
  /** Tentative bookings block time. */
  pending_blocks?: boolean | null;
  /** A request of the graph `confirm_decline` that is not answered for so long is declined, with the usual e-mails. Null: requests do not expire. */
  pending_expires?: string | null;
  /** How long before the start customers can still cancel. Later: 409 `policy`. */
  min_cancel_time?: string | number | null;
  /** How long before the start customers can still move a booking. Later: 409 `policy`. */
  min_reschedule_time?: string | number | null;
  /** Moves of a booking by the customer. */
  max_reschedules?: number | null;
  /** What happens if a customer declines the invitation in a calendar program. `note` (the default): the answer is stored. `cancel`: it also cancels the booking like the action `cancel_by_customer`, if the customer is the only one or has a seat of a group. */
  guest_declines?: "note" | "cancel" | null;
  /** Bookings of a resource per day in its time zone. */
  max_per_day?: number | null;
  /** Bookings of a resource per ISO week (Monday to Sunday) in its time zone. */
  max_per_week?: number | null;
  /** Bookings of a resource per calendar month in its time zone. */
  max_per_month?: number | null;
  /** Bookings of an e-mail address per local day of the resource, without cancelled, declined and unpaid bookings. One more: 409 `policy`. Not checked when PUT changes the address of a booking. */
  max_per_customer_per_day?: number | null;
  /** Bookings of an e-mail address that have not ended. One more: 409 `policy`. Not checked when PUT changes the address of a booking. */
  max_open_per_customer?: number | null;
  /** Query the connected calendars directly before a booking is created or moved, for at most 3 seconds. If a calendar is busy: 409 `slot_taken`. If a calendar does not respond in time, its stored events count. */
  check_external?: boolean | null;
  /** Whether the project has a hosted page. Null: the app's `publish_projects`. */
  published?: boolean | null;
  /** The number of customers that a booking with a widget key can have; 1 by default. */
  public_customers?: number | null;
  /** The units or seats that a widget key can book or hold at once; 1 by default. */
  max_quantity?: number | null;
  /** Widget keys may ask with `include=remaining` how many units are free. */
  show_remaining?: boolean | null;
  /** What a widget key needs to move a booking. `link` (the default): the `signature` of a link in an e-mail. `id`: the booking's id. */
  public_reschedule?: "link" | "id" | null;
  /** Customers can choose the resource on the hosted page; with `requires`, that of the requirement with this name (true: of the first). Not in mode mutual. */
  choose_resource?: boolean | string | null;
  /** Where the hosted page leads after a booking; the service adds `booking_id` to the query. Null: the page shows the booking. */
  redirect_url?: string | null;
  /** The payment page for graphs with payment, with the placeholders `{booking_id}`, `{start}`, `{until}` (the deadline) and `{signature}`; the service adds `booking_id` and `signature` to the query if they are absent. Without it and without `booking.payment_url`, a project with payment can't be published. */
  pay_url?: string | null;
  /** The only web sites that may show the hosted page in a frame. Null: any. */
  embed_origins?: string[] | null;
  /** Bookings with widget keys wait for the code of an e-mail to the customer: POST /v2/bookings answers 202. */
  verify_email?: boolean | null;
  /** The language of pages and e-mails. Null: the app's language. */
  language?: "en" | "ar" | "de" | "es" | "fr" | "it" | "ja" | "nl" | "pl" | "pt-BR" | "sv";
  /** The video call of new bookings. Null: none. */
  conference?: ConferenceSettingsInput | null;
};

/** The texts of a project in one language, each instead of the project's own. A text that is missing is the project's own. Null removes a text. */
export type ProjectTexts = {
  name?: string;
  /** Instead of `booking.what`. */
  what?: string;
  /** Instead of `booking.description`. */
  description?: string;
  /** Instead of `booking.where`, with the same placeholders. */
  where?: string;
  /** Instead of `ui.localization.submit_button`. */
  submit_button?: string;
  /** Instead of `ui.localization.success_message`. */
  success_message?: string;
  /** The texts of questions, by their key in `customer_fields`. At most 16 kB as JSON. */
  questions?: {
    [key: string]: QuestionTexts;
  };
};

export type ProjectTextsInput = {
  name?: string | null;
  /** Instead of `booking.what`. */
  what?: string | null;
  /** Instead of `booking.description`. */
  description?: string | null;
  /** Instead of `booking.where`, with the same placeholders. */
  where?: string | null;
  /** Instead of `ui.localization.submit_button`. */
  submit_button?: string | null;
  /** Instead of `ui.localization.success_message`. */
  success_message?: string | null;
  /** The texts of questions, by their key in `customer_fields`. At most 16 kB as JSON. */
  questions?: {
    [key: string]: QuestionTextsInput | null;
  } | null;
};

/** An OAuth client that the app has registered at a provider of calendars. */
export type ProviderClient = {
  provider: "google" | "microsoft";
  client_id: string;
  /** The address to register at the provider. */
  redirect_uri: string;
};

export type ProviderClientAnswer = {
  data: ProviderClient;
};

export type ProviderClientList = {
  data: ProviderClient[];
};

/** The booking's event in a connected calendar; null without one. */
export type ProviderEvent = {
  calendar_id: string;
  provider: string;
  /** The event's UID at the provider. */
  provider_id: string;
  /** `moved_there`, `removed_there`: the event was moved or removed in the external calendar, and the booking is unchanged. `refused`: the booking could not be moved. */
  state: "pending" | "written" | "removed" | "moved_there" | "removed_there" | "refused";
  reason: string | null;
  /** The time in the external calendar. */
  start: Date | null;
  end: Date | null;
  written_at: Date | null;
};

/** What a widget key sees of a booking's event. */
export type PublicEvent = {
  id: string;
  calendar_id: string;
  what: string;
  where: string;
  start: Date;
  end: Date;
};

/** A resource, as widget keys see it. */
export type PublicResource = {
  id: string;
  name: string;
  image: string;
  timezone: string;
};

export type Query = {
  /** The earliest start of a slot: the minimum notice. An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the next midnight), or a duration. Days, weeks and months use the wall clock of the resource. With `round_to_nearest_hour`, relative times are rounded up to the full hour. */
  from?: Date | string | null;
  /** `roundrobin_random`: one free resource per slot, at random. `roundrobin_prioritized`: the first free resource per slot, in the given order. `roundrobin_fair`: the free resource that is furthest behind its share of the project's bookings. `mutual`: slots when all resources are free. `exclusive`: slots when at least one resource is free, with all free resources. `all_free`: another name of `exclusive`. */
  mode?: "roundrobin_random" | "roundrobin_prioritized" | "roundrobin_fair" | "mutual" | "exclusive" | "all_free" | null;
  /** Shares of the bookings in the mode `roundrobin_fair`, by the id of the resource. Without an entry: 1. 0: no bookings by turn. */
  weights?: {
    [key: string]: number;
  } | null;
  /** In the mode `roundrobin_fair`, bookings made before this instant do not count. Null: the project's making. Without an offset: UTC. */
  calibrate_from?: Date | string | null;
  /** The length of a slot, `1 hour` by default. Null: complete free intervals. */
  length?: string | null;
  /** The lengths that a query or a booking may choose from. `length` is one of them; without it, the first is the default. */
  lengths?: string[] | null;
  /** The latest end of a slot: the booking window. The same values as `from`, at most 366 days after it. */
  to?: Date | string | null;
  /** Sets both `buffer_before` and `buffer_after`; each may still be given. */
  buffer?: string | number | null;
  /** Free time before a booking. Between two bookings lies at least the larger of the earlier one's `buffer_after` and the later one's `buffer_before`. A booking keeps the buffers that it was made with; an event without a booking has those of the query. */
  buffer_before?: string | number | null;
  /** Free time after a booking; see `buffer_before`. */
  buffer_after?: string | number | null;
  /** The distance between starts, counted from the opening times of the day. Absent: slots follow each other from the start of each free interval. */
  timeslot_increments?: string | null;
  /** Rules for when bookings may start. With `start_window` or `end_window`, the time between need not be open, such as a rental over night: it must be free and outside of blocking rules, and allowing rules do not count. Only of a project, and in the query of server keys. */
  start_window?: Constraint[] | null;
  /** Rules for when bookings may end: in their windows, or at the end of one. See `start_window`. */
  end_window?: Constraint[] | null;
  /** At most so many bookings of the project start within any time of this length, whatever their resources. Bookings that block and holds count, each with its `quantity`. */
  max_starts?: MaxStartsInput | null;
  /** Rounds a relative `from` up to the full hour; true by default. */
  round_to_nearest_hour?: boolean | null;
  /** All-day events do not block time. */
  ignore_all_day_events?: boolean | null;
  /** Absent parameters are the project's. All constraints apply. */
  project_id?: string | null;
  /** Ids. Required without a project. The default is the project's resources. For `requires`, an object: resources by the name of their requirement. */
  resources?: string[] | ({
    [key: string]: string | string[];
  }) | null;
  /** Slots with a different free resource for each requirement. Not with `resources`, and not for widget keys. The default is the project's. */
  requires?: Requirement[] | ({
    alternatives: Requirement[][];
  }) | null;
  /** Slots of a visit with these steps. Not with `resources` or `requires`, and not for widget keys. The default is the project's. */
  steps?: StepInput[] | null;
  /** Whether the steps of a visit follow each other as given (the default), or in any order. */
  order?: "given" | "any" | null;
  constraints?: Constraint[] | null;
  /** The units of a resource's capacity that a booking takes: slots with so many free ones. 1 by default; with a widget key, at most the project's `max_quantity`. */
  quantity?: number | null;
  /** The people who come: only resources whose `party` contains it, the smallest first, whatever the mode. The ranges of several resources add up. */
  party_size?: number | null;
  /** Include slots that have begun. Not for widget keys. */
  include_past?: boolean | null;
  /** The IANA zone of the times in the response. */
  output_timezone?: string | null;
};

export type QuestionTexts = {
  title?: string;
  /** The texts of the choices, by the choice: a value of `enum`. */
  choices?: {
    [key: string]: string;
  };
};

export type QuestionTextsInput = {
  title?: string | null;
  /** The texts of the choices, by the choice: a value of `enum`. */
  choices?: {
    [key: string]: string | null;
  } | null;
};

export type Readiness = {
  status: "ok" | "unavailable";
  database: "ok" | "read-only" | "unreachable";
  migrations: "ok" | "not applied" | "unknown";
};

/** Why time is not free. Widget keys see only `type` and `text`. */
export type Reason = {
  /** `capacity`: all places of a resource with a `capacity` are taken. */
  type: "constraint" | "event" | "hold" | "capacity" | "buffer" | "notice" | "past" | "limit" | "calendar" | "requirement";
  /** The owner of the rule; null without one. */
  source?: "resource" | "project" | "request" | "schedule" | null;
  /** The rule as it was sent. */
  constraint?: {
    [key: string]: unknown;
  };
  /** Instead of `constraint`, if several rules form a union. */
  constraints?: Array<{
    [key: string]: unknown;
  }>;
  /** The event that overlaps. */
  event_id?: string;
  /** The hold that overlaps. */
  reservation_id?: string;
  /** The stale calendar. */
  calendar_id?: string;
  /** The reason as text. */
  text: string;
};

export type Related = {
  /** The group of the seat. */
  owner_booking_id?: string | null;
};

export type RelativeTime = {
  type: "before" | "after";
  unit: "secs" | "mins" | "hours" | "days";
  time: number;
};

export type RelativeTimeInput = {
  type: "before" | "after";
  unit: "secs" | "mins" | "hours" | "days";
  time: number;
};

export type RenderedEmail = {
  subject: string;
  text: string;
  /** A whole HTML document. */
  html: string;
};

export type RenderedEmailAnswer = {
  data: RenderedEmail;
};

/** One kind of resource that a booking needs. */
export type Requirement = {
  name: string;
  /** Ids of resources, or tags: `{"any": [...]}` (one of them; also as `tags`), `{"all": [...]}`, or both. */
  any_of: unknown;
  count?: number;
  /** Which free resource is taken. `prioritized` (default): the first of `any_of`, of tags the first by name. `random`. `fair`: the one that has least of its share of the project's bookings, by `weights`. */
  mode?: "prioritized" | "random" | "fair";
  weights?: {
    [key: string]: number;
  };
  /** The mode `fair` counts bookings made since then. The default is the project's making. */
  calibrate_from?: string | null;
  /** The resource is needed so long after the start of the booking. The default is its start. */
  offset?: string;
  /** For how long. The default is the end of the booking; it may end later. A resource with an offset or a length keeps its own opening hours, and not the project's. */
  length?: string | null;
  /** Bookings are made without it where no resource is free. */
  optional?: boolean;
  /** The customer gets an e-mail if another resource is chosen. The default is true for the first requirement. */
  shown?: boolean;
};

/** When enough resources of a requirement are free, whatever the others take. */
export type RequirementTimes = {
  /** The number of the alternative that has the requirement; else 1. */
  alternative: number;
  name: string;
  free: Span[];
};

export type Reschedule = {
  /** The new resource. Absent: the same resource. */
  resource_id?: string | null;
  /** A solved challenge of GET /v2/challenge, for widget keys. */
  challenge?: string | null;
  /** The affected bookings of a series: only `this` booking (the default), also the `following`, or `all`. Completed bookings do not change. */
  scope?: "this" | "following" | "all" | null;
  /** Absent, with `end`: the same time. */
  start?: Date | string;
  /** ISO 8601 with an offset, or wall time without one. Years 1970 to 2199. */
  end?: Date | string;
  /** Other resources, by the name of the requirement; of a booking without requirements by the id of the present resource. The others stay where they are free. */
  resources?: {
    [key: string]: string | string[];
  } | null;
  /** Of a visit: only this step moves, to `start`, within its gaps. `end` is not used. */
  step?: string | null;
  message?: string | null;
  /** For a widget key: the `signature` of the link to move the booking, from an e-mail to the customer. */
  signature?: string | null;
};

export type Resource = {
  id: string;
  /** Its id in your own system: at most one resource of the app has it. */
  external_id: string | null;
  name: string;
  first_name: string;
  last_name: string;
  email: string | null;
  image: string;
  /** The IANA zone of the resource's rules. */
  timezone: string;
  /** The schedule under the resource's own rules. Null removes it. */
  schedule_id: string | null;
  tags: string[];
  /** So many bookings may overlap: 12 for a pool of twelve. A number below what is booked ahead: 409 `in_use`. */
  capacity: number;
  /** How many people it suits, such as a table: bookings and queries with `party_size` take a resource whose range contains it, or several whose sums do. Null: any number. */
  party: Party | null;
  meta: {
    [key: string]: unknown;
  };
  created_at: Date;
  updated_at: Date;
  /** With include=calendars, and in the answer of POST /v2/resources. */
  calendars?: Calendar[];
  availability_constraints?: Constraint[];
  /** The resource's own key: only in the response of POST /v2/resources. */
  api_token?: string | null;
  /** Only in the response to a repeated request with an Idempotency-Key: the secret was in the first one. */
  secret_shown?: boolean;
};

export type ResourceAnswer = {
  data: Resource;
};

export type ResourceId = {
  resource_id: string;
};

export type ResourceIds = ({
  resources: string[];
}) | string[];

export type ResourceInput = {
  /** Its id in your own system: at most one resource of the app has it. */
  external_id?: string | null;
  name?: string;
  first_name?: string | null;
  last_name?: string | null;
  /** ASCII before the @, a domain of IDNA 2008 after it. */
  email?: string | null;
  image?: (string | null) | string;
  /** The IANA zone of the resource's rules. */
  timezone?: string;
  /** The schedule under the resource's own rules. Null removes it. */
  schedule_id?: string | null;
  tags?: string[];
  /** So many bookings may overlap: 12 for a pool of twelve. A number below what is booked ahead: 409 `in_use`. */
  capacity?: number;
  /** How many people it suits, such as a table: bookings and queries with `party_size` take a resource whose range contains it, or several whose sums do. Null: any number. */
  party?: PartyInput | null;
  /** Free keys, at most 50 and 16 kB as JSON. */
  meta?: {
    [key: string]: unknown;
  };
  /** The password for POST /v2/auth. Null removes it. A change ends the tokens of earlier log-ins. */
  password?: string | null;
  availability_constraints?: Constraint[];
};

export type ResourcePage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Resource[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

export type ResourceZone = {
  timezone: string;
  /** The current offset in hours. */
  utc_offset: number;
};

export type ResourceZoneAnswer = {
  data: ResourceZone;
};

/** Rules that several resources share. */
export type Schedule = {
  id: string;
  name: string;
  availability_constraints: Constraint[];
  created_at: Date;
  updated_at: Date;
};

export type ScheduleAnswer = {
  data: Schedule;
};

export type ScheduleInput = {
  name?: string;
  availability_constraints?: Constraint[];
};

export type SchedulePage = {
  /** The number of rows on all pages; null with `cursor`, which counts none. */
  total: number | null;
  /** `limit` as the sent text, or the default as an integer. */
  per_page: number | string;
  /** Null with `cursor`. */
  current_page: number | null;
  /** Null with `cursor`. */
  last_page: number | null;
  first_page_url: string;
  /** Null with `cursor`. */
  last_page_url: string | null;
  next_page_url: string | null;
  /** For a page past the end: the last page. Null with `cursor`. */
  prev_page_url: string | null;
  /** The number of the page's first row, from 1; null on an empty page, and with `cursor`. */
  from: number | null;
  to: number | null;
  data: Schedule[];
  /** Only with `cursor`: its value in the next request; null on the last page. */
  next_cursor?: string | null;
};

/** The seven fields of every booking, and whose it is. */
export type Seat = {
  id: string;
  /** Its id in the client's own system. */
  external_id: string | null;
  state: "initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner";
  graph: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment";
  /** No action is possible. */
  completed: boolean;
  created_at: Date;
  updated_at: Date;
  customers: Customer[];
};

export type Segment = {
  start: Date;
  end: Date;
  available: boolean;
  reasons: Reason[];
};

export type Series = {
  id: string;
  rrule: string;
  /** Ordered by start: a booking, or the reason why there is none. */
  occurrences: Occurrence[];
};

/** The service. */
export type Service = {
  /** The version of the service. */
  version: string;
  limits: ServiceLimits;
  links: ServiceLinks;
};

export type ServiceAnswer = {
  data: Service;
};

/** Limits of all requests. */
export type ServiceLimits = {
  /** Of a key. */
  requests_per_minute: number;
  /** The largest body. */
  body_bytes: number;
  /** The largest `limit` of a list. */
  page_rows: number;
  /** How long the response to an Idempotency-Key is stored. */
  idempotency_hours: number;
  /** How long GET /v2/changes goes back. */
  changes_days: number;
};

/** Addresses of the service. */
export type ServiceLinks = {
  /** The OpenAPI document. */
  description: string;
  /** The same for people. */
  reference: string;
  guide: string;
  /** The app of a key. */
  app: string;
  /** Every change of the app. */
  changes: string;
};

export type Slot = {
  start: Date;
  end: Date;
  resources: SlotResource[];
  /** With include=remaining: the largest `quantity` that one of the resources can take. 1 where a booking takes several resources. */
  remaining?: number;
  /** Of a visit, in the order of their times. */
  steps?: SlotStep[];
};

export type SlotList = {
  data: Slot[];
  /** Only with stale calendars; never with a widget key. */
  warnings?: Warning[];
};

export type SlotResource = {
  id: string;
  name: string;
  timezone: string;
};

export type SlotStep = {
  start: Date;
  end: Date;
  name: string;
  resources: SlotResource[];
};

/** Where the bookings come from, by the source of their first log entry. */
export type Sources = {
  resource?: Named;
  project?: Named | null;
  /** Of resources, as they are now. */
  tag?: string;
  /** Its Monday. */
  week?: string;
  /** Its first day. */
  month?: string;
  /** All but drafts and groups. */
  bookings: number;
  /** A server key, a resource's key or an access token. */
  api: number;
  /** A booking page or a widget. */
  widget: number;
  /** The back office. */
  admin: number;
  /** A link in an e-mail. */
  link: number;
  /** The service's clock. */
  timer: number;
  /** A connected calendar. */
  calendar: number;
  /** An answer by e-mail. */
  mail: number;
  /** An agent, by a tool of /mcp. */
  mcp: number;
};

export type SourcesReport = {
  data: Sources[];
  /** The first day. */
  from: string;
  /** The day after the last one. */
  to: string;
  /** The app's zone: its days. */
  timezone: string;
  /** Changes before are counted; null: nothing is counted yet. */
  counted_until: string | null;
};

export type Span = {
  start: Date;
  end: Date;
};

export type SpanList = {
  data: Span[];
  /** Only with stale calendars; never with a widget key. */
  warnings?: Warning[];
};

export type SpanLists = {
  data: Span[][];
};

/** A step of a visit. */
export type Step = {
  name: string;
  length: string;
  requires?: StepRequirement[];
  /** Instead of `requires`: the step takes one of these. */
  resources?: string[];
  /** Not used where the step is the first one. */
  gap?: Gap;
  /** An earlier step: the (first) resource of that step does this one, too. */
  same_as?: string;
};

export type StepInput = {
  name: string;
  /** From 1 second to 73200 days; a day has 24 hours. */
  length: string;
  requires?: StepRequirementInput[];
  /** Instead of `requires`: the step takes one of these. */
  resources?: string[];
  /** Not used where the step is the first one. */
  gap?: GapInput;
  /** An earlier step: the (first) resource of that step does this one, too. */
  same_as?: string;
};

/** What a step of a visit needs for the whole step. */
export type StepRequirement = {
  name: string;
  /** Ids of resources, or tags: `{"any": [...]}` (one of them; also as `tags`), `{"all": [...]}`, or both. */
  any_of: unknown;
  count?: number;
  /** Which free resource is taken. `prioritized` (default): the first of `any_of`, of tags the first by name. `random`. `fair`: the one that has least of its share of the project's bookings, by `weights`. */
  mode?: "prioritized" | "random" | "fair";
  weights?: {
    [key: string]: number;
  };
  /** The mode `fair` counts bookings made since then. The default is the project's making. */
  calibrate_from?: string | null;
  /** The customer gets an e-mail if another resource is chosen. The default is true for the first requirement. */
  shown?: boolean;
};

export type StepRequirementInput = {
  name: string;
  /** Ids of resources, or tags: `{"any": [...]}` (one of them; also as `tags`), `{"all": [...]}`, or both. */
  any_of: string[] | ({
    all?: string[];
    any?: string[];
    tags?: string[];
  });
  count?: number;
  /** Which free resource is taken. `prioritized` (default): the first of `any_of`, of tags the first by name. `random`. `fair`: the one that has least of its share of the project's bookings, by `weights`. */
  mode?: "prioritized" | "random" | "fair";
  /** Weights in the mode `roundrobin_fair`, by the id of the resource; 1 by default. 0: no bookings by turn. */
  weights?: {
    [key: string]: number;
  };
  /** The mode `fair` counts bookings made since then. The default is the project's making. */
  calibrate_from?: Date | string | null;
  /** The customer gets an e-mail if another resource is chosen. The default is true for the first requirement. */
  shown?: boolean;
};

/** When a step of a visit could start, whatever the other steps need. */
export type StepTimes = {
  name: string;
  starts: Span[];
};

/** When the resource gets a booking in the mode `roundrobin_fair`: the less it has of its share, the sooner. */
export type Turn = {
  /** 1: the next. Null: never by turn. */
  position: number | null;
  weight: number;
  /** Made since `calibrate_from`, with holds that last. */
  bookings: number;
  /** The bookings that are due by its weight. */
  share: number;
  /** The same in words. */
  text: string;
};

/** A hold until the customer's e-mail address is verified. */
export type Unverified = {
  reservation_id: string;
  expires_at: Date;
  verification: "email";
};

export type UnverifiedAnswer = {
  data: Unverified;
};

/** How much of the open hours is booked. */
export type Utilisation = {
  resource?: Named;
  project?: Named | null;
  /** Of resources, as they are now. */
  tag?: string;
  /** Its Monday. */
  week?: string;
  /** Its first day. */
  month?: string;
  /** Of bookings that take place, in full length. */
  booked_seconds: number;
  /** Null by project: a project has no hours. */
  open_seconds: number | null;
  /** Booked by open; null without hours. */
  utilisation: number | null;
};

export type UtilisationReport = {
  data: Utilisation[];
  /** The first day. */
  from: string;
  /** The day after the last one. */
  to: string;
  /** The app's zone: its days. */
  timezone: string;
  /** Changes before are counted; null: nothing is counted yet. */
  counted_until: string | null;
};

export type ValidationToken = string;

export type Verification = {
  /** The six digits of the e-mail. */
  code: string;
};

/** A connected calendar of which nothing new has been known for longer than the service allows: what stands in it now may not be in this answer. With the app's setting `stale_calendars: block` its resource has no free time meanwhile. */
export type Warning = {
  type: "calendar_out_of_step";
  resource_id: string;
  calendar_id: string;
  /** The calendar's name. */
  name: string;
  /** Null: never yet. */
  synced_at: Date | null;
  /** The same in words. */
  text: string;
};

/** A subscription to changes of bookings. */
export type Webhook = {
  id: string;
  url: string;
  method: "post" | "put" | "patch";
  /** null: any. */
  graph: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment" | null;
  /** Empty: all states. A move matches `rescheduled` and the booking's current state. */
  states: Array<"initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner" | "rescheduled">;
  /** Only calls of these kinds (values of `Service-Event`). Empty: all except `booking.reassigned`, `booking.updated`, `booking.response`, `calendar.problem`, and those of resources, projects and deliveries. A change of resources alone is `booking.rescheduled` for a webhook that does not name `booking.reassigned`. */
  kinds: Array<"booking.initialized" | "booking.confirmed" | "booking.cancelled" | "booking.cancelled_by_customer" | "booking.completed" | "booking.tentative" | "booking.declined" | "booking.paid" | "booking.unpaid" | "booking.cancelled_by_owner" | "booking.rescheduled" | "booking.reassigned" | "booking.updated" | "booking.response" | "calendar.problem" | "resource.created" | "resource.updated" | "resource.deleted" | "project.created" | "project.updated" | "project.deleted" | "delivery.failed">;
  /** `standard`: the body is `{type, timestamp, data}` as in Standard Webhooks. `thin`: `{kind, id, cursor}` alone. null: the object, with `change`. */
  format: "standard" | "thin" | null;
  /** The only status that counts as success; null: any 2xx. */
  expected_response_code: number | null;
  active: boolean;
  description: string;
  /** Why the service has disabled the webhook: 410, or five days without success. Enabling the webhook clears it. */
  disabled_reason: string | null;
  created_at: Date;
  updated_at: Date;
  /** The key that signs calls as in Standard Webhooks. Shown only when the webhook is created and when its secret is rotated. */
  secret?: string | null;
  /** Only in the response to a repeated request with an Idempotency-Key: the secret was in the first one. */
  secret_shown?: boolean;
};

export type WebhookAnswer = {
  data: Webhook;
};

export type WebhookInput = {
  url?: string;
  /** Upper or lower case. */
  method?: string;
  /** null: any. */
  graph?: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment" | null;
  /** Empty: all states. A move matches `rescheduled` and the booking's current state. */
  states?: Array<"initialized" | "confirmed" | "cancelled" | "cancelled_by_customer" | "completed" | "tentative" | "declined" | "paid" | "unpaid" | "cancelled_by_owner" | "rescheduled">;
  /** Only calls of these kinds (values of `Service-Event`). Empty: all except `booking.reassigned`, `booking.updated`, `booking.response`, `calendar.problem`, and those of resources, projects and deliveries. A change of resources alone is `booking.rescheduled` for a webhook that does not name `booking.reassigned`. */
  kinds?: Array<"booking.initialized" | "booking.confirmed" | "booking.cancelled" | "booking.cancelled_by_customer" | "booking.completed" | "booking.tentative" | "booking.declined" | "booking.paid" | "booking.unpaid" | "booking.cancelled_by_owner" | "booking.rescheduled" | "booking.reassigned" | "booking.updated" | "booking.response" | "calendar.problem" | "resource.created" | "resource.updated" | "resource.deleted" | "project.created" | "project.updated" | "project.deleted" | "delivery.failed">;
  /** `standard`: the body is `{type, timestamp, data}` as in Standard Webhooks. `thin`: `{kind, id, cursor}` alone. null: the object, with `change`. */
  format?: "standard" | "thin" | null;
  /** The only status that counts as success; null: any 2xx. */
  expected_response_code?: number | string | null;
  active?: boolean;
  description?: string | null;
};

export type WebhookList = {
  data: Webhook[];
};

export type WebhookSettings = {
  url: string;
  method: "post" | "put" | "patch" | "get";
  /** Absent: any 2xx. */
  expected_response_code?: number;
};

/** The body of an error, by its `code`. */
export interface ErrorBodies {
  action_not_allowed: ErrorBody;
  address_not_allowed: ErrorBody;
  already_exists: ErrorBody;
  cursor_expired: ErrorBody;
  forbidden: ErrorBody;
  group_full: ErrorBody;
  hold_expired: ErrorBody;
  idempotency_in_progress: ErrorBody;
  idempotency_mismatch: ErrorBody;
  in_use: ErrorBody;
  internal: ErrorBody;
  invalid: ErrorBody;
  malformed: ErrorBody;
  method_not_allowed: ErrorBody;
  misdirected: ErrorBody;
  not_acceptable: ErrorBody;
  not_attempted: ErrorBody;
  not_available: ErrorBody;
  not_found: ErrorBody;
  not_kept: ErrorBody;
  outdated: ErrorBody;
  policy: ErrorBody;
  precondition_failed: ErrorBody;
  rate_limited: ErrorBody;
  request_timeout: ErrorBody;
  second_factor_required: ErrorBody;
  slot_taken: ErrorBody;
  too_large: ErrorBody;
  unauthenticated: ErrorBody;
  unavailable: ErrorBody;
  unsupported_media_type: ErrorBody;
}

/** What each operation takes and answers. */
export interface Operations {
  /** Liveness. */
  "GET /healthz": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: Health;
  };
  /** Readiness. */
  "GET /readyz": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: Readiness;
  };
  /** Version, limits and links of the service. */
  "GET /v2": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: ServiceAnswer;
  };
  /** The app of the credential. */
  "GET /v2/app": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: AppAnswer;
  };
  /** List the caller's apps. */
  "GET /v2/apps": {
    path?: undefined;
    query?: { orderBy?: "created_at" | "updated_at" | "name" | "slug"; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: AppPage;
  };
  /** Create an app. */
  "POST /v2/apps": {
    path?: undefined;
    query?: undefined;
    body: NewApp;
    answer: AppAnswer;
  };
  /** An app. */
  "GET /v2/apps/{slug}": {
    path: { slug: string };
    query?: undefined;
    body?: undefined;
    answer: AppAnswer;
  };
  /** Change an app. */
  "PUT /v2/apps/{slug}": {
    path: { slug: string };
    query?: undefined;
    body: AppInput;
    answer: AppAnswer;
  };
  /** Archive an app: its keys are refused, its data stays. */
  "DELETE /v2/apps/{slug}": {
    path: { slug: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change an app. */
  "PATCH /v2/apps/{slug}": {
    path: { slug: string };
    query?: undefined;
    body: AppInput;
    answer: AppAnswer;
  };
  /** List members. */
  "GET /v2/apps/{slug}/members": {
    path: { slug: string };
    query?: { limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: MemberPage;
  };
  /** Invite a person. */
  "POST /v2/apps/{slug}/members": {
    path: { slug: string };
    query?: undefined;
    body: NewMember;
    answer: MemberAnswer;
  };
  /** Remove a member or an invitation. */
  "DELETE /v2/apps/{slug}/members/{member_id}": {
    path: { member_id: string; slug: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Log in with a password. */
  "POST /v2/auth": {
    path?: undefined;
    query?: undefined;
    body: LogInInput;
    answer: LogInAnswer;
  };
  /** Find free slots. */
  "POST /v2/availability": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: Query;
    answer: SlotList;
  };
  /** Count the slots per date. */
  "POST /v2/availability/count": {
    path?: undefined;
    query?: undefined;
    body: Query;
    answer: CountList;
  };
  /** List dates with slots and their resources. */
  "POST /v2/availability/dates": {
    path?: undefined;
    query?: undefined;
    body: Query;
    answer: DateList;
  };
  /** Explain why time is free or not, per resource. */
  "POST /v2/availability/explain": {
    path?: undefined;
    query?: undefined;
    body: Query;
    answer: ExplanationList;
  };
  /** List bookings. */
  "GET /v2/bookings": {
    path?: undefined;
    query?: { calendar_id?: string; completed?: boolean; customer_email?: string; customer_external_id?: string; end?: Date | string; external_id?: string; graph?: "instant" | "confirm_decline" | "instant_payment" | "group_owner" | "group_customer" | "group_customer_payment"; include?: string | readonly string[]; orderBy?: "created_at" | "updated_at" | "completed" | "graph" | "state" | "start" | "end" | "event.start" | "event.end"; outcome?: "attended" | "no_show"; owner_booking_id?: string; project_id?: string; resource_id?: string; search?: string; series_id?: string; sortedBy?: "asc" | "desc"; start?: Date | string; state?: string | readonly string[]; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: BookingPage;
  };
  /** Create a booking. */
  "POST /v2/bookings": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: BookingBody;
    answer: BookingAnswer;
  };
  /** Get a booking. */
  "GET /v2/bookings/{booking_id}": {
    path: { booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: BookingAnswer;
  };
  /** Change a booking. */
  "PUT /v2/bookings/{booking_id}": {
    path: { booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: BookingChange;
    answer: BookingAnswer;
  };
  /** Delete a completed booking. */
  "DELETE /v2/bookings/{booking_id}": {
    path: { booking_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a booking. */
  "PATCH /v2/bookings/{booking_id}": {
    path: { booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: BookingChange;
    answer: BookingAnswer;
  };
  /** Apply an action to a booking. */
  "PUT /v2/bookings/{booking_id}/{action}": {
    path: { action: "cancel" | "cancel_by_customer" | "cancel_by_owner" | "complete" | "confirm" | "create" | "decline" | "pay" | "timeout"; booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: ActionBody | undefined;
    answer: BookingAnswer;
  };
  /** Apply an action to a booking. */
  "POST /v2/bookings/{booking_id}/{action}": {
    path: { action: "cancel" | "cancel_by_customer" | "cancel_by_owner" | "complete" | "confirm" | "create" | "decline" | "pay" | "timeout"; booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: ActionBody | undefined;
    answer: BookingAnswer;
  };
  /** Move a booking to another time, or to another resource. */
  "PUT /v2/bookings/{booking_id}/reschedule": {
    path: { booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: Reschedule;
    answer: BookingAnswer;
  };
  /** Move a booking to another time, or to another resource. */
  "POST /v2/bookings/{booking_id}/reschedule": {
    path: { booking_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: Reschedule;
    answer: BookingAnswer;
  };
  /** Change many bookings. */
  "PUT /v2/bookings/bulk": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: BulkChanges;
    answer: BulkOutcomeList;
  };
  /** Create many bookings. */
  "POST /v2/bookings/bulk": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: NewBulk;
    answer: BulkOutcomeList;
  };
  /** List groups with free seats. */
  "GET /v2/bookings/groups": {
    path?: undefined;
    query?: { end?: Date | string; full?: boolean; include?: string | readonly string[]; orderBy?: "created_at" | "updated_at" | "completed" | "graph" | "state" | "start" | "end" | "event.start" | "event.end"; search?: string; sortedBy?: "asc" | "desc"; start?: Date | string; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: BookingPage;
  };
  /** A group. */
  "GET /v2/bookings/groups/{group_id}": {
    path: { group_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: BookingAnswer;
  };
  /** Hold a time. */
  "POST /v2/bookings/reserve": {
    path?: undefined;
    query?: undefined;
    body: HoldBody;
    answer: HoldAnswer;
  };
  /** Release a hold. */
  "DELETE /v2/bookings/reserve/{reservation_id}": {
    path: { reservation_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Send a new code. */
  "POST /v2/bookings/reserve/{reservation_id}/code": {
    path: { reservation_id: string };
    query?: undefined;
    body?: undefined;
    answer: UnverifiedAnswer;
  };
  /** Verify an e-mail address and make its booking. */
  "POST /v2/bookings/reserve/{reservation_id}/verify": {
    path: { reservation_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: Verification;
    answer: BookingAnswer;
  };
  /** Extend a hold. */
  "PUT /v2/bookings/reserve/extend": {
    path?: undefined;
    query?: undefined;
    body: Extension;
    answer: HoldAnswer;
  };
  /** List calendars. */
  "GET /v2/calendars": {
    path?: undefined;
    query?: { orderBy?: "created_at" | "updated_at" | "name"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: CalendarPage;
  };
  /** Create or connect a calendar. */
  "POST /v2/calendars": {
    path?: undefined;
    query?: undefined;
    body: NewCalendar;
    answer: CalendarAnswer;
  };
  /** A calendar. */
  "GET /v2/calendars/{calendar_id}": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: CalendarAnswer;
  };
  /** Change a calendar. */
  "PUT /v2/calendars/{calendar_id}": {
    path: { calendar_id: string };
    query?: undefined;
    body: CalendarInput;
    answer: CalendarAnswer;
  };
  /** Delete a calendar. */
  "DELETE /v2/calendars/{calendar_id}": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a calendar. */
  "PATCH /v2/calendars/{calendar_id}": {
    path: { calendar_id: string };
    query?: undefined;
    body: CalendarInput;
    answer: CalendarAnswer;
  };
  /** Disconnect a calendar. */
  "POST /v2/calendars/{calendar_id}/disconnect": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: CalendarAnswer;
  };
  /** Create the feed of a calendar. */
  "POST /v2/calendars/{calendar_id}/feed": {
    path: { calendar_id: string };
    query?: undefined;
    body?: NewCalendarFeed | undefined;
    answer: CalendarFeedAnswer;
  };
  /** Delete the feed of a calendar. */
  "DELETE /v2/calendars/{calendar_id}/feed": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Sync a connected calendar now. */
  "POST /v2/calendars/{calendar_id}/sync": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: CalendarAnswer;
  };
  /** Test a connected calendar. */
  "POST /v2/calendars/{calendar_id}/test": {
    path: { calendar_id: string };
    query?: undefined;
    body?: undefined;
    answer: CalendarTestAnswer;
  };
  /** List the app's clients at Google and Microsoft. */
  "GET /v2/calendars/clients": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: ProviderClientList;
  };
  /** Store the app's client at a provider. */
  "PUT /v2/calendars/clients/{provider}": {
    path: { provider: "google" | "microsoft" };
    query?: undefined;
    body: NewProviderClient;
    answer: ProviderClientAnswer;
  };
  /** Delete the app's client at a provider. */
  "DELETE /v2/calendars/clients/{provider}": {
    path: { provider: "google" | "microsoft" };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Store the app's client at a provider. */
  "PATCH /v2/calendars/clients/{provider}": {
    path: { provider: "google" | "microsoft" };
    query?: undefined;
    body: NewProviderClient;
    answer: ProviderClientAnswer;
  };
  /** Ask a person for a calendar at Google or Microsoft. */
  "POST /v2/calendars/connect": {
    path?: undefined;
    query?: undefined;
    body: NewConsent;
    answer: ConsentUrlAnswer;
  };
  /** Google says that a calendar has changed. */
  "POST /v2/calendars/notifications/google": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Get a challenge. */
  "GET /v2/challenge": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: ChallengeAnswer;
  };
  /** List the changes since a cursor. */
  "GET /v2/changes": {
    path?: undefined;
    query?: { cursor?: string; limit?: number; types?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: ChangesPage;
  };
  /** List keys. */
  "GET /v2/credentials": {
    path?: undefined;
    query?: { orderBy?: "created_at" | "updated_at"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: CredentialPage;
  };
  /** Create a key. */
  "POST /v2/credentials": {
    path?: undefined;
    query?: undefined;
    body: NewCredential;
    answer: CredentialAnswer;
  };
  /** Revoke a key. */
  "DELETE /v2/credentials/{credential_id}": {
    path: { credential_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** List customers. */
  "GET /v2/customers": {
    path?: undefined;
    query?: { external_id?: string; orderBy?: "last_booking_at" | "first_booking_at" | "bookings" | "email"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: PersonPage;
  };
  /** Erase a person's data. */
  "POST /v2/customers/erase": {
    path?: undefined;
    query?: undefined;
    body: Address;
    answer: ErasedAnswer;
  };
  /** Export all data about an e-mail address. */
  "GET /v2/customers/export": {
    path?: undefined;
    query: { email: string };
    body?: undefined;
    answer: PersonExportAnswer;
  };
  /** Change the internal note on a customer. */
  "PUT /v2/customers/note": {
    path?: undefined;
    query?: undefined;
    body: CustomerNote;
    answer: undefined;
  };
  /** List deliveries. */
  "GET /v2/deliveries": {
    path?: undefined;
    query?: { booking?: string; orderBy?: "created_at" | "updated_at"; sortedBy?: "asc" | "desc"; state?: "scheduled" | "sending" | "delivered" | "failed" | "cancelled" | "skipped" | "expired"; type?: "email" | "webhook" | "calendar"; updated_since?: Date | string; webhook?: string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: DeliveryPage;
  };
  /** Get a delivery, with the body of the call. */
  "GET /v2/deliveries/{delivery_id}": {
    path: { delivery_id: string };
    query?: undefined;
    body?: undefined;
    answer: DeliveryAnswer;
  };
  /** Send a delivery again. */
  "POST /v2/deliveries/{delivery_id}/redeliver": {
    path: { delivery_id: string };
    query?: undefined;
    body?: undefined;
    answer: DeliveryAnswer;
  };
  /** List the events that overlap a range. */
  "GET /v2/events": {
    path?: undefined;
    query: { end: Date | string; orderBy?: "created_at" | "updated_at" | "start" | "end"; search?: string; sortedBy?: "asc" | "desc"; start: Date | string; updated_since?: Date | string; limit?: number; page?: number; cursor?: string };
    body?: undefined;
    answer: EventPage;
  };
  /** Create an event. */
  "POST /v2/events": {
    path?: undefined;
    query?: undefined;
    body: NewEvent;
    answer: EventAnswer;
  };
  /** An event. */
  "GET /v2/events/{event_id}": {
    path: { event_id: string };
    query?: undefined;
    body?: undefined;
    answer: EventAnswer;
  };
  /** Change an event. */
  "PUT /v2/events/{event_id}": {
    path: { event_id: string };
    query?: undefined;
    body: EventInput;
    answer: EventAnswer;
  };
  /** Delete an event. */
  "DELETE /v2/events/{event_id}": {
    path: { event_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change an event. */
  "PATCH /v2/events/{event_id}": {
    path: { event_id: string };
    query?: undefined;
    body: EventInput;
    answer: EventAnswer;
  };
  /** Find common free time. */
  "POST /v2/findtime": {
    path?: undefined;
    query?: undefined;
    body: Findtime;
    answer: SpanList;
  };
  /** Run several findtime queries. */
  "POST /v2/findtime/bulk": {
    path?: undefined;
    query?: undefined;
    body: FindtimeQueries;
    answer: SpanLists;
  };
  /** Run several findtime queries. */
  "POST /v2/findtime/team": {
    path?: undefined;
    query?: undefined;
    body: FindtimeQueries;
    answer: SpanLists;
  };
  /** This description. */
  "GET /v2/openapi.json": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: Description;
  };
  /** List projects. */
  "GET /v2/projects": {
    path?: undefined;
    query?: { external_id?: string; include?: string | readonly string[]; orderBy?: "created_at" | "updated_at" | "name"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: ProjectPage;
  };
  /** Create a project. */
  "POST /v2/projects": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: NewProject;
    answer: ProjectAnswer;
  };
  /** A project. */
  "GET /v2/projects/{project_id}": {
    path: { project_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: ProjectAnswer;
  };
  /** Change a project. */
  "PUT /v2/projects/{project_id}": {
    path: { project_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ProjectInput;
    answer: ProjectAnswer;
  };
  /** Delete a project. */
  "DELETE /v2/projects/{project_id}": {
    path: { project_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a project. */
  "PATCH /v2/projects/{project_id}": {
    path: { project_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ProjectInput;
    answer: ProjectAnswer;
  };
  /** The resources of a project, in its order. */
  "GET /v2/projects/{project_id}/resources": {
    path: { project_id: string };
    query?: { external_id?: string; include?: string | readonly string[]; orderBy?: "position" | "created_at" | "updated_at" | "name"; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: ResourcePage;
  };
  /** Set the resources of a project. */
  "PUT /v2/projects/{project_id}/resources": {
    path: { project_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceIds;
    answer: ProjectAnswer;
  };
  /** Add a resource to a project. */
  "POST /v2/projects/{project_id}/resources": {
    path: { project_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceId;
    answer: ProjectAnswer;
  };
  /** Remove a resource from a project. */
  "DELETE /v2/projects/{project_id}/resources/{resource_id}": {
    path: { project_id: string; resource_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change the project with an external id, or create it. */
  "PUT /v2/projects/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ProjectInput;
    answer: ProjectAnswer | ProjectAnswer;
  };
  /** Change the project with an external id, or create it. */
  "PATCH /v2/projects/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ProjectInput;
    answer: ProjectAnswer | ProjectAnswer;
  };
  /** Get the configuration of an embedded page. */
  "GET /v2/projects/embed/{project_id}": {
    path: { project_id: string };
    query?: undefined;
    body?: undefined;
    answer: EmbeddedPageAnswer;
  };
  /** Get the configuration of a hosted page. */
  "GET /v2/projects/hosted/{project_slug}": {
    path: { project_slug: string };
    query?: undefined;
    body?: undefined;
    answer: HostedPageAnswer;
  };
  /** New and returning customers. */
  "GET /v2/reports/customers": {
    path?: undefined;
    query?: { by?: string | readonly string[]; from?: string; to?: string } | undefined;
    body?: undefined;
    answer: CustomersReport;
  };
  /** Lead times. */
  "GET /v2/reports/lead-time": {
    path?: undefined;
    query?: { by?: string | readonly string[]; from?: string; to?: string } | undefined;
    body?: undefined;
    answer: LeadTimeReport;
  };
  /** Outcomes. */
  "GET /v2/reports/outcomes": {
    path?: undefined;
    query?: { by?: string | readonly string[]; from?: string; to?: string } | undefined;
    body?: undefined;
    answer: OutcomesReport;
  };
  /** Sources. */
  "GET /v2/reports/sources": {
    path?: undefined;
    query?: { by?: string | readonly string[]; from?: string; to?: string } | undefined;
    body?: undefined;
    answer: SourcesReport;
  };
  /** Utilisation. */
  "GET /v2/reports/utilisation": {
    path?: undefined;
    query?: { by?: string | readonly string[]; from?: string; to?: string } | undefined;
    body?: undefined;
    answer: UtilisationReport;
  };
  /** List resources. */
  "GET /v2/resources": {
    path?: undefined;
    query?: { external_id?: string; include?: string | readonly string[]; orderBy?: "created_at" | "updated_at" | "name"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: ResourcePage;
  };
  /** Create a resource. */
  "POST /v2/resources": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: NewResource;
    answer: ResourceAnswer;
  };
  /** A resource. */
  "GET /v2/resources/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: ResourceAnswer;
  };
  /** Change a resource. */
  "PUT /v2/resources/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer;
  };
  /** Delete a resource. */
  "DELETE /v2/resources/{resource_id}": {
    path: { resource_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a resource. */
  "PATCH /v2/resources/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer;
  };
  /** Change the resource with an external id, or create it. */
  "PUT /v2/resources/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer | ResourceAnswer;
  };
  /** Change the resource with an external id, or create it. */
  "PATCH /v2/resources/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer | ResourceAnswer;
  };
  /** Send a password reset link to a resource. */
  "POST /v2/resources/resetpassword": {
    path?: undefined;
    query?: undefined;
    body: PasswordReset;
    answer: EmptyAnswer;
  };
  /** Get the time zone of the resource with an e-mail address. */
  "GET /v2/resources/timezone/{email}": {
    path: { email: string };
    query?: undefined;
    body?: undefined;
    answer: ResourceZoneAnswer;
  };
  /** List schedules. */
  "GET /v2/schedules": {
    path?: undefined;
    query?: { orderBy?: "created_at" | "updated_at" | "name"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: SchedulePage;
  };
  /** Create a schedule. */
  "POST /v2/schedules": {
    path?: undefined;
    query?: undefined;
    body: NewSchedule;
    answer: ScheduleAnswer;
  };
  /** A schedule. */
  "GET /v2/schedules/{schedule_id}": {
    path: { schedule_id: string };
    query?: undefined;
    body?: undefined;
    answer: ScheduleAnswer;
  };
  /** Change a schedule. */
  "PUT /v2/schedules/{schedule_id}": {
    path: { schedule_id: string };
    query?: undefined;
    body: ScheduleInput;
    answer: ScheduleAnswer;
  };
  /** Delete a schedule. */
  "DELETE /v2/schedules/{schedule_id}": {
    path: { schedule_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a schedule. */
  "PATCH /v2/schedules/{schedule_id}": {
    path: { schedule_id: string };
    query?: undefined;
    body: ScheduleInput;
    answer: ScheduleAnswer;
  };
  /** List e-mail templates. */
  "GET /v2/templates": {
    path?: undefined;
    query?: undefined;
    body?: undefined;
    answer: EmailTemplateList;
  };
  /** Get an e-mail template. */
  "GET /v2/templates/{template_slug}": {
    path: { template_slug: "tentative_owner" | "tentative_customer" | "confirmed_customer" | "confirmed_owner" | "declined_customer" | "cancelled_customer" | "cancelled_owner" | "cancelled_by_customer_owner" | "cancelled_by_customer_customer" | "unpaid_customer" | "rescheduled_customer" | "rescheduled_owner" | "reassigned_customer" | "reassigned_owner" | "unassigned_owner" | "updated_customer" | "updated_owner" | "conference_customer" | "conference_owner" | "new_times_customer" | "message_customer" | "reminder_customer" | "reminder_owner" };
    query?: undefined;
    body?: undefined;
    answer: EmailTemplateAnswer;
  };
  /** Change an e-mail template. */
  "PUT /v2/templates/{template_slug}": {
    path: { template_slug: "tentative_owner" | "tentative_customer" | "confirmed_customer" | "confirmed_owner" | "declined_customer" | "cancelled_customer" | "cancelled_owner" | "cancelled_by_customer_owner" | "cancelled_by_customer_customer" | "unpaid_customer" | "rescheduled_customer" | "rescheduled_owner" | "reassigned_customer" | "reassigned_owner" | "unassigned_owner" | "updated_customer" | "updated_owner" | "conference_customer" | "conference_owner" | "new_times_customer" | "message_customer" | "reminder_customer" | "reminder_owner" };
    query?: undefined;
    body: EmailTemplateInput;
    answer: EmailTemplateAnswer;
  };
  /** Change an e-mail template. */
  "PATCH /v2/templates/{template_slug}": {
    path: { template_slug: "tentative_owner" | "tentative_customer" | "confirmed_customer" | "confirmed_owner" | "declined_customer" | "cancelled_customer" | "cancelled_owner" | "cancelled_by_customer_owner" | "cancelled_by_customer_customer" | "unpaid_customer" | "rescheduled_customer" | "rescheduled_owner" | "reassigned_customer" | "reassigned_owner" | "unassigned_owner" | "updated_customer" | "updated_owner" | "conference_customer" | "conference_owner" | "new_times_customer" | "message_customer" | "reminder_customer" | "reminder_owner" };
    query?: undefined;
    body: EmailTemplateInput;
    answer: EmailTemplateAnswer;
  };
  /** Preview an e-mail template. */
  "POST /v2/templates/{template_slug}/preview": {
    path: { template_slug: "tentative_owner" | "tentative_customer" | "confirmed_customer" | "confirmed_owner" | "declined_customer" | "cancelled_customer" | "cancelled_owner" | "cancelled_by_customer_owner" | "cancelled_by_customer_customer" | "unpaid_customer" | "rescheduled_customer" | "rescheduled_owner" | "reassigned_customer" | "reassigned_owner" | "unassigned_owner" | "updated_customer" | "updated_owner" | "conference_customer" | "conference_owner" | "new_times_customer" | "message_customer" | "reminder_customer" | "reminder_owner" };
    query?: undefined;
    body?: Preview | undefined;
    answer: RenderedEmailAnswer;
  };
  /** List times that are not free, per resource. */
  "POST /v2/unavailable/slots": {
    path?: undefined;
    query?: undefined;
    body: Query;
    answer: SlotList;
  };
  /** List resources. */
  "GET /v2/users": {
    path?: undefined;
    query?: { external_id?: string; include?: string | readonly string[]; orderBy?: "created_at" | "updated_at" | "name"; search?: string; sortedBy?: "asc" | "desc"; updated_since?: Date | string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: ResourcePage;
  };
  /** Create a resource. */
  "POST /v2/users": {
    path?: undefined;
    query?: { include?: string | readonly string[] } | undefined;
    body: NewResource;
    answer: ResourceAnswer;
  };
  /** A resource. */
  "GET /v2/users/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body?: undefined;
    answer: ResourceAnswer;
  };
  /** Change a resource. */
  "PUT /v2/users/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer;
  };
  /** Delete a resource. */
  "DELETE /v2/users/{resource_id}": {
    path: { resource_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a resource. */
  "PATCH /v2/users/{resource_id}": {
    path: { resource_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer;
  };
  /** Change the resource with an external id, or create it. */
  "PUT /v2/users/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer | ResourceAnswer;
  };
  /** Change the resource with an external id, or create it. */
  "PATCH /v2/users/by-external-id/{external_id}": {
    path: { external_id: string };
    query?: { include?: string | readonly string[] } | undefined;
    body: ResourceInput;
    answer: ResourceAnswer | ResourceAnswer;
  };
  /** Send a password reset link to a resource. */
  "POST /v2/users/resetpassword": {
    path?: undefined;
    query?: undefined;
    body: PasswordReset;
    answer: EmptyAnswer;
  };
  /** Get the time zone of the resource with an e-mail address. */
  "GET /v2/users/timezone/{email}": {
    path: { email: string };
    query?: undefined;
    body?: undefined;
    answer: ResourceZoneAnswer;
  };
  /** List webhooks. */
  "GET /v2/webhooks": {
    path?: undefined;
    query?: { orderBy?: "created_at" | "updated_at" | "url"; sortedBy?: "asc" | "desc"; updated_since?: Date | string } | undefined;
    body?: undefined;
    answer: WebhookList;
  };
  /** Create a webhook. */
  "POST /v2/webhooks": {
    path?: undefined;
    query?: undefined;
    body: NewWebhook;
    answer: WebhookAnswer;
  };
  /** A webhook. */
  "GET /v2/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query?: undefined;
    body?: undefined;
    answer: WebhookAnswer;
  };
  /** Change a webhook. */
  "PUT /v2/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query?: undefined;
    body: WebhookInput;
    answer: WebhookAnswer;
  };
  /** Delete a webhook. */
  "DELETE /v2/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query?: undefined;
    body?: undefined;
    answer: undefined;
  };
  /** Change a webhook. */
  "PATCH /v2/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query?: undefined;
    body: WebhookInput;
    answer: WebhookAnswer;
  };
  /** List the deliveries of a webhook. */
  "GET /v2/webhooks/{webhook_id}/deliveries": {
    path: { webhook_id: string };
    query?: { booking?: string; orderBy?: "created_at" | "updated_at"; sortedBy?: "asc" | "desc"; state?: "scheduled" | "sending" | "delivered" | "failed" | "cancelled" | "skipped" | "expired"; type?: "email" | "webhook" | "calendar"; updated_since?: Date | string; webhook?: string; limit?: number; page?: number; cursor?: string } | undefined;
    body?: undefined;
    answer: DeliveryPage;
  };
  /** Rotate the secret of a webhook. */
  "POST /v2/webhooks/{webhook_id}/rotate": {
    path: { webhook_id: string };
    query?: undefined;
    body?: undefined;
    answer: WebhookAnswer;
  };
  /** Send a test call. */
  "POST /v2/webhooks/{webhook_id}/test": {
    path: { webhook_id: string };
    query?: undefined;
    body?: undefined;
    answer: DeliveryAnswer;
  };
}
