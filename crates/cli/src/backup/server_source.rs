//! A running server as the source of a backup.

use crate::problem::Problem;
use serde_json::from_slice;
use std::io::Read;
use wellspring_backup::plan::{BackupPlan, PlannedLog, PlannedSegment};
use wellspring_backup::{BackupError, Source};
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Client, ClientError, Request};
use wellspring_host::names::SYSTEM_LOG;

/// A server, over HTTP.
pub(super) struct ServerSource {
    client: Client,
    /// The history of the log `system` in the plan. That log is never deleted, so the server is the
    /// planned one as long as the log has this history.
    system_history: Option<String>,
}

impl ServerSource {
    pub(super) fn new(client: Client) -> ServerSource {
        ServerSource { client, system_history: None }
    }

    /// Why the server has a log of the plan no more: the log was deleted, or the server was
    /// restored or is another one.
    fn why_gone(&mut self, log: &str) -> BackupError {
        let replaced = |detail: &str| BackupError::Refused {
            detail: format!(
                "the server no longer has the log {log} as planned, and {detail}: take another backup"
            ),
            status: Some(409),
        };
        let Some(history) = self.system_history.clone().filter(|_| log != SYSTEM_LOG) else {
            return replaced("it was restored while the backup was taken");
        };
        // No byte of it; the header makes the server compare the history.
        let path = format!("/v1/logs/{SYSTEM_LOG}/segments/1?bytes=0");
        let headers = [("Accept", "*/*"), ("Wellspring-History", history.as_str())];
        match self.client.call(&Request::get(&path, &headers)) {
            Ok(answer) if answer.head.status == 200 => {
                BackupError::LogDeleted { log: log.to_owned() }
            }
            Ok(answer) if Problem::of(&answer).slug() == "another-history" => {
                replaced("it was restored while the backup was taken, or is another server")
            }
            Ok(answer) => refused(&Problem::of(&answer), answer.head.status),
            Err(error) => unreachable(&error),
        }
    }
}

fn refused(problem: &Problem, status: u16) -> BackupError {
    if problem.slug() == "corrupt" {
        return BackupError::DamagedSource { detail: problem.detail.clone() };
    }
    BackupError::Refused { detail: problem.sentence(), status: Some(status) }
}

fn unreachable(error: &ClientError) -> BackupError {
    BackupError::Refused { detail: error.to_string(), status: None }
}

impl Source for ServerSource {
    fn plan(&mut self) -> Result<BackupPlan, BackupError> {
        let request = Request::get("/v1/backup", &[("Accept", "application/json")]);
        let answer = self.client.call(&request).map_err(|error| unreachable(&error))?;
        let status = answer.head.status;
        if status != 200 {
            return Err(refused(&Problem::of(&answer), status));
        }
        let plan: BackupPlan = from_slice(&answer.body).map_err(|error| BackupError::Refused {
            detail: format!("the server did not send the plan of a backup ({error})"),
            status: None,
        })?;
        let system = plan.logs.iter().find(|log| log.name == SYSTEM_LOG);
        self.system_history = system.map(|log| log.history.clone());
        Ok(plan)
    }

    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> Result<Box<dyn Read + '_>, BackupError> {
        let path = format!(
            "/v1/logs/{}/segments/{}?bytes={}",
            percent_encode(&log.name),
            segment.base,
            segment.bytes
        );
        let headers = [("Accept", "*/*"), ("Wellspring-History", log.history.as_str())];
        let request = Request::get(&path, &headers);
        let (head, mut body) = self.client.open(&request).map_err(|error| unreachable(&error))?;
        if head.status == 200 {
            return Ok(Box::new(body));
        }
        let mut bytes = Vec::new();
        let _ = (&mut body).take(1 << 20).read_to_end(&mut bytes);
        let problem = Problem::of_head(&head, &bytes);
        Err(match problem.slug() {
            "log-not-found" | "another-history" => self.why_gone(&log.name),
            "trimmed" => BackupError::BeginningRemoved { log: log.name.clone() },
            _ => refused(&problem, head.status),
        })
    }
}
