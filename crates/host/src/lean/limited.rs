//! Applies the limits on requests and bytes to a session. Costs a branch where nothing is limited.

use super::loop_state::LoopState;
use super::seam::{CountedRequest, Guards};
use super::session::Session;
use crate::fast::PipelineOrder;
use crate::identity::Holder;
use crate::limits::{Limits, QuotaKeys};
use crate::wire::problem::Problem;
use std::net::IpAddr;

/// Takes a request from the quotas of its connection, its address and this holder; returns who
/// pays for its body in any case.
pub(super) fn count<P>(
    limits: &Limits,
    request: &CountedRequest<'_, P>,
    holder: Option<Holder<'_>>,
) -> (QuotaKeys, Result<(), Box<Problem>>) {
    let CountedRequest { client, connection, now_us, .. } = *request;
    let mut quota_keys = limits.quota_keys(client);
    let mut admitted = limits.admit(Some(connection), quota_keys, now_us);
    if let (Ok(()), Some(holder)) = (&admitted, holder) {
        admitted = limits.admit_account(&mut quota_keys, holder, now_us);
    }
    (quota_keys, admitted)
}

impl Session {
    /// Takes a request of this client from the quotas of its connection, its address and its
    /// account, once however many paths it passes; its body is charged to them. A handler counts
    /// what no path before it has counted.
    pub(super) fn count<G: Guards>(
        &mut self,
        shared: &LoopState<G>,
        path_index: usize,
        client: Option<IpAddr>,
        pass: Option<&G::Pass>,
    ) -> Result<(), Box<Problem>> {
        if !shared.limited || self.is_counted {
            return Ok(());
        }
        if shared.paths[path_index].path.order() == PipelineOrder::Alone {
            self.quota_keys = None;
            return Ok(());
        }
        self.is_counted = true;
        let connection = &*self.rate;
        let request = CountedRequest { client, connection, pass, now_us: shared.now_us };
        let (quota_keys, admitted) = shared.guards.count(request);
        self.quota_keys = Some(quota_keys);
        admitted
    }

    /// Charges bytes of the body of the last counted request.
    pub(super) fn charge_bytes<G: Guards>(&self, shared: &LoopState<G>, bytes: usize) {
        if let Some(quota_keys) = self.quota_keys {
            shared.guards.charge(quota_keys, bytes, shared.now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{FakeGuards, limited_desk, statuses};
    use super::super::session::NextStep;
    use super::super::session_tests::LIMITS;
    use super::*;
    use crate::stats::RefusalReason;

    const PLAIN: &str = "POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";
    const CHUNKED: &str = "POST /e HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n\
        7\r\n{\"e\":1}\r\n0\r\n\r\n";
    const VISIT: &str = "GET /Yci HTTP/1.1\r\nHost: l\r\n\r\n";

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    /// The statuses answered to a connection from `peer`, sent in pieces of this length.
    fn answered(
        shared: &mut LoopState<FakeGuards>,
        from: &str,
        input: &[u8],
        piece: usize,
    ) -> Vec<u16> {
        let mut session = Session::new(peer(from));
        let mut answers = Vec::new();
        for piece in input.chunks(piece) {
            let mut turn = session.receive(shared, piece);
            while matches!(turn, NextStep::Flush | NextStep::Later) {
                answers.append(&mut shared.out);
                turn = session.resume(shared);
            }
            assert_eq!(turn, NextStep::More, "the connection goes on");
            answers.append(&mut shared.out);
        }
        statuses(&answers).expect("answers")
    }

    #[test]
    fn what_is_over_is_answered_429_at_every_split_and_the_connection_goes_on() {
        let input = [PLAIN, VISIT, CHUNKED, PLAIN, VISIT, PLAIN, CHUNKED, VISIT, PLAIN].concat();
        for piece in [1, 2, 7, 40, 100, input.len()] {
            let (limits, stats) = Limits::for_tests(&["--requests-per-second-per-connection", "1"]);
            let mut shared = limited_desk(LIMITS, limits);
            let got = answered(&mut shared, "192.0.2.1", input.as_bytes(), piece);
            assert_eq!(got, [202, 302, 202, 202, 302, 429, 429, 429, 429], "{piece}");
            assert_eq!(shared.guards.script.borrow().taken.len(), 5);
            assert_eq!(stats.refusals.of(RefusalReason::RequestOfConnection), 4);
            // Another connection has its own quota, and time refills it.
            assert_eq!(answered(&mut shared, "192.0.2.1", VISIT.as_bytes(), piece), [302]);
        }
    }

    /// The fake handlers count nothing.
    #[test]
    fn a_request_is_counted_once_or_by_its_handler() {
        let post = |path: &str, content: &str| {
            let length = content.len();
            format!("POST {path} HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n{content}")
        };
        // The appends' path sends it elsewhere.
        let passed_on = post("/both", "!");
        let put_off = post("/handled", "~");
        let input = [passed_on.repeat(5), put_off.repeat(3), passed_on, put_off].concat();
        let flags =
            ["--requests-per-second-per-address", "1", "--bytes-per-second-per-address", "1"];
        for piece in [1, 7, 100, input.len()] {
            let (limits, _) = Limits::for_tests(&flags);
            let mut shared = limited_desk(LIMITS, limits);
            let got = answered(&mut shared, "192.0.2.1", input.as_bytes(), piece);
            assert_eq!(got, [200, 200, 200, 200, 200, 200, 200, 200, 429, 200], "{piece}");
        }
    }

    #[test]
    fn time_brings_back_what_a_connection_may_send() {
        let (limits, _) = Limits::for_tests(&["--requests-per-second-per-address", "2"]);
        let mut shared = limited_desk(LIMITS, limits);
        let many = PLAIN.repeat(12);
        let mut got = answered(&mut shared, "192.0.2.1", many.as_bytes(), many.len());
        assert_eq!(got.iter().filter(|&&status| status == 202).count(), 10);
        shared.now_us = 1_000_000;
        got = answered(&mut shared, "192.0.2.1", many.as_bytes(), many.len());
        assert_eq!(got.iter().filter(|&&status| status == 202).count(), 2);
        assert_eq!(answered(&mut shared, "192.0.2.2", PLAIN.as_bytes(), 1000), [202]);
    }

    #[test]
    fn behind_a_trusted_proxy_the_client_counts_also_when_the_head_comes_again() {
        let flags = ["--requests-per-second-per-address", "1", "--trusted-proxies", "10.0.0.0/8"];
        let (limits, _) = Limits::for_tests(&flags);
        let mut shared = limited_desk(LIMITS, limits);
        let of = |client: &str| {
            format!(
                "POST /e HTTP/1.1\r\nHost: l\r\nx-forwarded-FOR: 192.0.2.99\r\nX-Forwarded-For: {client} \r\n\
                 Content-Length: 7\r\n\r\n{{\"e\":1}}"
            )
        };
        let (one, other) = (of("192.0.2.1").repeat(7), of("192.0.2.2").repeat(6));
        let got = answered(&mut shared, "10.1.1.1", one.as_bytes(), 1000);
        assert_eq!(got, [202, 202, 202, 202, 202, 429, 429]);
        let got = answered(&mut shared, "10.1.1.1", other.as_bytes(), 1000);
        assert_eq!(got, [202, 202, 202, 202, 202, 429]);
        // An untrusted proxy is not believed.
        let got = answered(&mut shared, "192.0.2.7", [one, other].concat().as_bytes(), 1000);
        assert_eq!(got.iter().filter(|&&status| status == 202).count(), 5);
    }

    #[test]
    fn bytes_are_owed_also_those_of_refused_bodies() {
        let (limits, stats) = Limits::for_tests(&["--bytes-per-second-per-address", "10"]);
        let mut shared = limited_desk(LIMITS, limits);
        // 7 bytes each: the eighth is on credit.
        let many = PLAIN.repeat(10);
        let got = answered(&mut shared, "192.0.2.1", many.as_bytes(), 33);
        assert_eq!(got, [202, 202, 202, 202, 202, 202, 202, 202, 429, 429]);
        assert_eq!(stats.refusals.of(RefusalReason::BytesOfAddress), 2);
        // 70 bytes arrived, of which 50 are free and 10 a second are refilled.
        for (now_us, status) in [(1_999_000, 429), (2_800_000, 202)] {
            shared.now_us = now_us;
            assert_eq!(answered(&mut shared, "192.0.2.1", PLAIN.as_bytes(), 1000), [status]);
        }
    }
}
