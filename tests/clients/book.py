"""Books twice with the client that OpenAPI Generator made, and prints what came of it."""

import json
import sys

from booking_api import ApiClient, ApiException, BookingBody, BookingsApi, Configuration

address, key, resource_id = sys.argv[1:]
body = BookingBody.from_dict(
    {
        "resource_id": resource_id,
        "start": "2031-02-04T09:00:00+00:00",
        "end": "2031-02-04T10:00:00+00:00",
        "what": "Check-up",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
    }
)
with ApiClient(Configuration(host=address, username="", password=key)) as client:
    api = BookingsApi(client)
    made = api.create_booking_with_http_info(body)
    try:
        api.create_booking(body)
    except ApiException as refused:
        told = [made.status_code, made.data.data.state, refused.status, refused.data.code]
        print(json.dumps(told))
