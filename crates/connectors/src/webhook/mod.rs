//! Webhooks: one request an event.
