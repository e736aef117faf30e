//! Where the events of one segment that match a query stand. Derived from the
//! segment, disposable, never part of what makes an append durable.
