"""When is there time? Pure functions on integer epoch seconds: no Django, no clock, no database."""
