//! Black-box tests: the real binary over real sockets, with clients that share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod abuse;
mod account;
mod accounts;
mod append;
mod audit;
mod backups;
#[cfg(feature = "s3")]
mod backups_s3;
mod bench;
mod bench_reports;
mod bounded_work;
mod browser;
mod canary;
mod catalogue_bounds;
mod catalogue_client;
mod catalogue_crash;
mod catalogue_foreign;
mod catalogue_fresh;
mod catalogue_import;
mod catalogue_race;
mod catalogue_rebuild;
mod catalogue_refused;
mod catalogue_retry;
mod catalogue_roles;
#[cfg(feature = "search")]
mod catalogue_search;
mod catalogue_transcript;
mod client;
mod closed;
mod cluster;
mod cluster_common;
mod cluster_leads;
mod cluster_outages;
mod cluster_trust;
mod conditions;
mod consistency;
mod cors;
mod counts;
mod crash;
mod device;
mod dialects;
mod disclosure;
mod done;
mod doors;
mod examples;
mod exit_codes;
mod exposition;
mod flipped_bytes;
mod following;
mod foreign_tokens;
mod freshness;
mod graph_client;
mod graph_crash;
mod graph_databases;
mod graph_disk;
mod graph_figures;
mod graph_foreign;
mod graph_histories;
mod graph_original;
mod graph_race;
mod graph_rebuild;
mod graph_recorded;
mod graph_rules;
mod graph_runaway;
mod graph_serial;
mod graph_tck;
mod graph_transactions;
mod graph_transcript;
mod head_method;
mod histories;
mod imports;
mod imports_other_options;
mod ingest_account;
mod ingest_crash;
mod ingest_crowd;
mod ingest_original;
mod ingest_pressure;
mod issuer;
#[cfg(feature = "kafka")]
mod kafka_sinks;
#[cfg(feature = "kafka")]
mod kafka_sources;
mod keys;
#[cfg(target_os = "linux")]
mod lean;
mod lean_access;
#[cfg(target_os = "linux")]
mod leaving;
mod lifecycle;
mod limits;
mod links;
mod links_crash;
mod links_host;
mod links_load;
mod links_many;
mod links_policy;
mod links_race;
mod links_rebuild;
mod links_refused;
mod links_retry;
mod logins;
mod mending;
mod metrics;
mod missing_end;
mod nodes;
mod numbered;
#[cfg(feature = "otlp")]
mod otlp;
mod ownership;
mod planted_links;
mod postgres;
mod race;
mod readme;
mod redirects;
mod rubbish;
mod server;
mod shortener;
mod sinks;
mod sinks_receiver;
mod standing;
mod tls;
mod tls_certificates;
mod tls_tools;
mod tool_outputs;
#[cfg(target_os = "linux")]
mod top;
mod transcript;
mod trouble;
mod unread;
mod upgrades;
mod user_cli;
mod user_login;
mod user_passwords;
