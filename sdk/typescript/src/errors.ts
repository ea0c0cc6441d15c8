import type { ErrorBodies } from "./generated/types.js";

/** The `code` of an error of the API. */
export type ErrorCode = keyof ErrorBodies;

/** The code of a response that is not the API's, such as a page of a proxy. */
export type ForeignCode = "unexpected_response";

export interface ForeignBody {
  error: string;
  code: ForeignCode;
  request_id: string;
}

type Body<Code> = Code extends ErrorCode ? ErrorBodies[Code] : ForeignBody;

/** A refusal by the service. `isError(error, "slot_taken")` also tells the type of its `body`. */
export class SchedulingError<Code extends ErrorCode | ForeignCode = ErrorCode | ForeignCode>
  extends Error {
  override readonly name = "SchedulingError";

  /**
   * @param status the HTTP status
   * @param code a stable code for programs
   * @param body the whole body; its instants are dates
   * @param retryAfter the seconds after which a repeated request may succeed, if the service said so
   */
  constructor(
    readonly status: number,
    readonly code: Code,
    readonly body: Body<Code>,
    readonly retryAfter?: number,
  ) {
    super((body as ForeignBody).error);
  }

  /** The id of the request in the service's log. */
  get requestId(): string {
    return (this.body as ForeignBody).request_id;
  }
}

/** No response arrived, or not in time, however often the request was sent. `cause` says why. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";
}

/**
 * The project asks customers to confirm their address (`settings.verify_email`): the time is held,
 * and the customer gets a code by e-mail. `bookings.verify(reservationId, code)` then books. Only
 * with a widget key.
 */
export class VerificationRequired extends Error {
  override readonly name = "VerificationRequired";

  constructor(
    readonly reservationId: string,
    readonly expiresAt: Date,
  ) {
    super("The customer has to confirm the e-mail address.");
  }
}

/** Whether something that was thrown is an error of the API with this code. */
export function isError<Code extends ErrorCode | ForeignCode>(
  error: unknown,
  code: Code,
): error is SchedulingError<Code> {
  return error instanceof SchedulingError && error.code === code;
}
