// Calls the service with Timekit's own SDK, and prints what each call answered.
const timekit = require("timekit-sdk");
const [address, key] = process.argv.slice(2);
timekit.configure({ apiBaseUrl: `${address}/`, appKey: key });
const told = [];
async function call(name, data) {
  try {
    const { status, data: answer } = await timekit[name](data);
    told.push(`${name} ${status}`);
    return answer;
  } catch (error) {
    told.push(`${name} ${error.status} ${error.data?.code ?? error}`);
    return error.data;
  }
}
async function main() {
  const time = (hour) => `2031-02-03T${hour}:00:00+00:00`;
  const customer = { name: "Marty McFly", email: "marty@example.com" };
  await call("getApp");
  const ada = await call("createResource", { name: "Ada", timezone: "UTC", email: "ada.sdk@example.com" });
  const ben = await call("createResource", { name: "Ben", timezone: "UTC" });
  await call("getResources");
  await call("getResource", { id: ada.id });
  await call("updateResource", { id: ada.id, firstName: "Ada" });
  await call("getResourceTimezone", { email: "ada.sdk@example.com" });
  const [calendar] = await call("getCalendars");
  await call("getCalendar", { id: calendar.id });
  const event = await call("createEvent", { calendarId: calendar.id, what: "Lunch", start: time(12), end: time(13) });
  await call("getEvents", { start: time(11), end: time(14) });
  await call("getEvent", { id: event.id });
  await call("updateEvent", { id: event.id, what: "Long lunch" });
  await call("deleteEvent", { id: event.id });
  const project = await call("createProject", {
    name: "Check-up",
    resources: [ada.id],
    availability: { length: "1 hour", from: "2031-02-03", to: "2031-02-05", mode: "roundrobin_random" },
    booking: { graph: "confirm_decline", what: "Check-up" },
  });
  await call("getProjects");
  await call("getProject", { id: project.id });
  await call("getEmbedProject", { id: project.id });
  await call("getHostedProject", { slug: project.slug });
  await call("updateProject", { id: project.id, name: "Check-up 2" });
  await call("addProjectResource", { id: project.id, resourceId: ben.id });
  await call("getProjectResources", { id: project.id });
  await call("setProjectResources", { id: project.id, resources: [ada.id, ben.id] });
  await call("removeProjectResource", { id: project.id, resourceId: ben.id });
  const slots = await call("fetchAvailability", { projectId: project.id });
  await call("fetchAvailabilityDates", { projectId: project.id });
  await call("fetchAvailabilityCounts", { projectId: project.id });
  const wanted = { projectId: project.id, start: slots[0].start, end: slots[0].end };
  const hold = await call("reserveBooking", { ...wanted, resourceId: ada.id });
  await call("extendReservedBooking", { reservationId: hold.reservation_id });
  const booking = await call("createBooking", { ...wanted, reservationId: hold.reservation_id, resourceId: ada.id, customer });
  await call("getBookings");
  await call("getBooking", { id: booking.id });
  await call("updateBooking", { id: booking.id, action: "confirm" });
  await call("rescheduleBooking", { id: booking.id, start: slots[5].start, end: slots[5].end });
  await call("updateBooking", { id: booking.id, action: "cancel" });
  await call("deleteBooking", { id: booking.id });
  const made = await call("createBookingsBulk", {
    bookings: [15, 17].map((hour) => ({ graph: "instant", resourceId: ada.id, what: "Bulk", start: time(hour), end: time(hour + 1), customer })),
  });
  await call("getGroupBookings");
  await call("getEmailTemplates");
  await call("getEmailTemplate", "confirmed_customer");
  await call("getCredentials");
  const credential = await call("createCredential", { kind: "server", description: "SDK" });
  await call("deleteCredential", { id: credential.id });
  await call("deleteProject", { id: project.id });
  console.log(JSON.stringify(told));
}
main();
