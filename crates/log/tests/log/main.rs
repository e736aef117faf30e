//! The log as its users see it, against a slow oracle and a disk that fails.

mod conditions;
mod crash;
mod damage;
mod faults;
mod idempotence;
mod oracle;
mod race;
mod reads;
mod subscriptions;
