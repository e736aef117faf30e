//! Ingest over the general stack: HTTP/2, and HTTP/1.1 connections that the lean loop has handed
//! over or does not serve.

use std::sync::Arc;
use wellspring_host::http::required_freshness::freshen;
use wellspring_host::http::subjects::ensure_key;
use wellspring_host::http::{Answer, Host, Request, Response, fast};
use wellspring_host::ingest::{IngestConfig, IngestOverflow};
use wellspring_host::node::IngestAccount;
use wellspring_log::batcher::Amount;

/// `POST /e`.
pub(crate) async fn post(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let target = request.uri.path_and_query().map_or("", |text| text.as_str()).to_owned();
    ensure_key(&host, &request, &target).await?;
    Ok(fast::serve(&host, &mut request, &target).await)
}

/// `GET /e`.
pub(crate) async fn up(_host: Arc<Host>, _request: Box<Request>) -> Answer {
    Ok(Response::json(200, &br#"{"status":"UP"}"#[..]))
}

/// `GET /v1/ingest`.
pub(crate) async fn account(host: Arc<Host>, request: Box<Request>) -> Answer {
    let log = request.log()?;
    freshen(&request, log).await?;
    let account = host.node.account(&request.log_name).unwrap_or_default();
    Ok(Response::json(200, account_json(&account, &host.ingest_config)))
}

/// The document of `GET /v1/ingest`.
fn account_json(account: &IngestAccount, config: &IngestConfig) -> String {
    let amount = |name: &str, amount: Amount| {
        format!(r#""{name}":{{"events":{},"bytes":{}}}"#, amount.events, amount.bytes)
    };
    let amounts = [
        amount("accepted", account.accepted),
        amount("stored", account.stored),
        amount("in_flight", account.in_flight()),
        amount("shed", account.shed),
        amount("dropped", account.dropped),
        amount("lost_possible", account.in_flight()),
    ];
    let overflow = match config.ingest_overflow {
        IngestOverflow::Block => "block",
        IngestOverflow::Shed => "shed",
    };
    format!(
        r#"{{{},"window":{{"flush_ms":{},"last_us":{},"longest_us":{}}},"overflow":"{overflow}","partitions":{},"partition_bytes":{}}}"#,
        amounts.join(","),
        config.ingest_flush_ms,
        account.figures.window_last_us,
        account.figures.window_longest_us,
        account.figures.partitions,
        config.ingest_partition_bytes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_written_with_all_its_amounts() {
        let amount = |events| Amount { events, bytes: events * 10 };
        let account = IngestAccount {
            accepted: amount(29),
            stored: amount(23),
            shed: amount(4),
            dropped: amount(1),
            ..IngestAccount::default()
        };
        let json =
            account_json(&account, &wellspring_host::config::HostConfig::for_tests(&[]).ingest);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let events = |name: &str| json[name]["events"].as_u64().unwrap();
        assert_eq!((events("accepted"), events("stored"), events("dropped")), (29, 23, 1));
        assert_eq!((events("in_flight"), events("shed"), events("lost_possible")), (5, 4, 5));
        assert_eq!(json["overflow"], "block");
    }
}
