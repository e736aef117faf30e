//! Sinks and sources: their definitions, over HTTP or in the configuration, and their states.
//!
//! - `document`, `settings`, `secrets`: definitions as they are written, and the secrets they name.
//! - `view`: what is told, as events of the log `system`.
//! - `supervisor`, `runner`, `cursors`: what runs of it here.
//! - `handlers`, `report`, `figures`: what clients see.

#![forbid(unsafe_code)]

mod cursors;
mod document;
mod figures;
mod handlers;
mod problems;
mod report;
mod runner;
mod secrets;
mod settings;
mod start;
mod supervisor;
mod view;

use figures::ReportFigures;
use handlers::{SINK, SOURCE};
use problems::{
    CONNECTOR_CONFIGURED, KAFKA_NOT_BUILT, SINK_NOT_FOUND, SOURCE_NOT_FOUND, TOO_MANY_CONNECTORS,
    TOO_MANY_SKIPS,
};
use report::{ConnectorReport, report};
use secrets::SecretFolder;
use settings::ConnectorConfig;
use std::sync::Arc;
use supervisor::Supervisor;
use view::{ConnectorKey, ConnectorKind, ConnectorView, MAX_CONNECTORS, MAX_SKIPS};
use wellspring_connectors::source::oldest_cursor;
use wellspring_host::declare::routes;
use wellspring_host::http::contract::{AnsweredBy, FRESHNESS, SYSTEM_POSITION};
use wellspring_host::http::declared_problems::{APPENDING, VIEWING};
use wellspring_host::http::face::{Face, ServedRoute, Surroundings};
use wellspring_host::http::{Host, JSON};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::node::LogReader;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::problem::{self, INVALID, Kind, Problem};
use wellspring_log::ReadError;

/// The face.
pub struct ConnectorFace {
    host: Arc<Host>,
    view: Arc<ViewSlot<ConnectorView>>,
    supervisor: Arc<Supervisor>,
}

impl Face for ConnectorFace {
    const NAME: &'static str = "connectors";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    const LIMITS: &'static [(&'static str, usize)] =
        &[("sinks_and_sources", MAX_CONNECTORS), ("skips_of_a_sink", MAX_SKIPS)];
    type Settings = ConnectorConfig;
    const ROUTES: &'static [ServedRoute<ConnectorFace>] = routes! { |face| face;
        GET "/v1/sinks" Node Operator handlers::list_sinks: "All sinks: their definitions and \
                                                             states."
            .fresh(FRESHNESS) .answered(AnsweredBy::Leader) .fails[APPENDING, VIEWING] => [200 JSON "Sinks"];
        PUT "/v1/sinks/{name}" Node Admin handlers::define_sink: "Defines a sink, or changes its definition."
            .at(&SINK) .takes[(JSON, "SinkDefinition")]
            .fails[APPENDING, VIEWING, &[&CONNECTOR_CONFIGURED, &TOO_MANY_CONNECTORS, &KAFKA_NOT_BUILT]]
            => [200 JSON "Sink" + SYSTEM_POSITION, 201 JSON "Sink" + SYSTEM_POSITION];
        GET "/v1/sinks/{name}" Node Operator handlers::get_sink: "A sink: its definition and state."
            .at(&SINK) .fresh(FRESHNESS) .answered(AnsweredBy::Leader) .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND]] => [200 JSON "Sink"];
        DELETE "/v1/sinks/{name}" Node Admin handlers::remove_sink: "Removes a sink. Delivered events stay at the destination."
            .at(&SINK) .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND, &CONNECTOR_CONFIGURED]] => [204 + SYSTEM_POSITION];
        POST "/v1/sinks/{name}/pause" Node Operator handlers::pause_sink: "Pauses a sink."
            .at(&SINK) .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND]] => [200 JSON "Sink" + SYSTEM_POSITION];
        POST "/v1/sinks/{name}/resume" Node Operator handlers::resume_sink: "Resumes a paused sink, or restarts a stopped one."
            .at(&SINK) .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND]] => [200 JSON "Sink" + SYSTEM_POSITION];
        POST "/v1/sinks/{name}/skip" Node Operator handlers::skip: "Makes a sink skip one event, such as one that its destination refuses."
            .at(&SINK) .takes[(JSON, "SinkSkip")] .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND, &TOO_MANY_SKIPS]]
            => [200 JSON "Sink" + SYSTEM_POSITION];
        POST "/v1/sinks/{name}/reset" Node Admin handlers::reset_sink: "Moves a sink to another position. Events may be delivered again, or never."
            .at(&SINK) .takes[(JSON, "SinkReset")] .fails[APPENDING, VIEWING, &[&SINK_NOT_FOUND, &INVALID]]
            => [200 JSON "Sink" + SYSTEM_POSITION];
        GET "/v1/sources" Node Operator handlers::list_sources: "All sources: their definitions and states."
            .fresh(FRESHNESS) .answered(AnsweredBy::Leader) .fails[APPENDING, VIEWING] => [200 JSON "Sources"];
        PUT "/v1/sources/{name}" Node Admin handlers::define_source: "Defines a source, or changes its definition."
            .at(&SOURCE) .takes[(JSON, "SourceDefinition")]
            .fails[APPENDING, VIEWING, &[&CONNECTOR_CONFIGURED, &TOO_MANY_CONNECTORS, &KAFKA_NOT_BUILT]]
            => [200 JSON "Source" + SYSTEM_POSITION, 201 JSON "Source" + SYSTEM_POSITION];
        GET "/v1/sources/{name}" Node Operator handlers::get_source: "A source: its definition and state."
            .at(&SOURCE) .fresh(FRESHNESS) .answered(AnsweredBy::Leader) .fails[APPENDING, VIEWING, &[&SOURCE_NOT_FOUND]]
            => [200 JSON "Source"];
        DELETE "/v1/sources/{name}" Node Admin handlers::remove_source: "Removes a source. Appended events stay in the log."
            .at(&SOURCE) .fails[APPENDING, VIEWING, &[&SOURCE_NOT_FOUND, &CONNECTOR_CONFIGURED]] => [204 + SYSTEM_POSITION];
        POST "/v1/sources/{name}/pause" Node Operator handlers::pause_source: "Pauses a source."
            .at(&SOURCE) .fails[APPENDING, VIEWING, &[&SOURCE_NOT_FOUND]] => [200 JSON "Source" + SYSTEM_POSITION];
        POST "/v1/sources/{name}/resume" Node Operator handlers::resume_source: "Resumes a paused source, or restarts a stopped one."
            .at(&SOURCE) .fails[APPENDING, VIEWING, &[&SOURCE_NOT_FOUND]] => [200 JSON "Source" + SYSTEM_POSITION];
        POST "/v1/sources/{name}/reset" Node Admin handlers::reset_source:
            "Restarts a source where its definition says. Records may be appended again, or never."
            .at(&SOURCE) .fails[APPENDING, VIEWING, &[&SOURCE_NOT_FOUND]] => [200 JSON "Source" + SYSTEM_POSITION];
    };

    fn check(
        settings: &ConnectorConfig,
        _surroundings: Surroundings<'_>,
    ) -> Result<(), SetupError> {
        let connectors = settings.connectors()?;
        if connectors.len() > MAX_CONNECTORS {
            return Err(format!("there are more than {MAX_CONNECTORS} sinks and sources").into());
        }
        if let (Some(_), false) = (
            connectors.iter().find(|it| handlers::is_of_kafka(&it.definition)),
            cfg!(feature = "kafka"),
        ) {
            return Err("a sink or source of the configuration connects to Kafka, and this program was built \
                        without the feature kafka".into());
        }
        Ok(())
    }

    fn open(settings: ConnectorConfig, host: &Arc<Host>) -> Result<ConnectorFace, SetupError> {
        let configured = settings.connectors()?;
        let view = ViewSlot::new(|| Ok(()));
        host.attach(SYSTEM_LOG, &view)?;
        let secrets = SecretFolder::new(settings.secrets);
        let supervisor = Supervisor::start(host, &view, secrets, configured)?;
        Ok(ConnectorFace { host: Arc::clone(host), view, supervisor })
    }

    fn figures(&self) -> Vec<Family> {
        let reports = |kind| self.reports(kind);
        let mut families = ReportFigures { reports: &reports(ConnectorKind::Sink) }.sinks();
        families.extend(ReportFigures { reports: &reports(ConnectorKind::Source) }.sources());
        families
    }

    fn log_readers(&self, log: &str) -> Result<Vec<LogReader>, ReadError> {
        let of_log = |kind| {
            let reports = self.reports(kind).into_iter();
            reports.filter(|(_, report)| report.log() == log)
        };
        let mut readers: Vec<LogReader> = of_log(ConnectorKind::Sink)
            .map(|(name, report)| LogReader { kind: "sink", name, position: report.needed })
            .collect();
        for (name, _) in of_log(ConnectorKind::Source) {
            let Some(target) = self.host.node.get(log) else { continue };
            if let Some(position) = oldest_cursor(&target, &name)? {
                readers.push(LogReader { kind: "source", name, position });
            }
        }
        Ok(readers)
    }

    fn close(&self) {
        self.supervisor.close();
    }
}

impl Drop for ConnectorFace {
    fn drop(&mut self) {
        self.supervisor.close();
    }
}

impl ConnectorFace {
    /// The view of connectors.
    fn live(&self) -> Result<Arc<Live<ConnectorView>>, Box<Problem>> {
        self.view.live().ok_or_else(|| problem::LOG_CLOSED.because("the log system is closed"))
    }

    /// The reports on all connectors of a kind in the current fold, by name.
    fn reports(&self, kind: ConnectorKind) -> Vec<(String, ConnectorReport)> {
        let live = self.view.live();
        let Some(folded) = live.as_ref().and_then(|live| live.folded()) else { return Vec::new() };
        let connectors: Vec<(ConnectorKey, _)> = folded.read(|connectors| {
            let of_kind = connectors.all().filter(|(key, _)| key.kind == kind);
            of_kind.map(|(key, connector)| (key, connector.clone())).collect()
        });
        let reported = connectors.into_iter().map(|(key, connector)| {
            let report = report(&self.host, &self.supervisor, &key, &connector);
            (key.name, report)
        });
        reported.collect()
    }
}
