//! A running server as the source of a backup.

use crate::problem::Problem;
use serde_json::from_slice;
use std::io::Read;
use wellspring_backup::plan::{BackupPlan, PlannedLog, PlannedSegment};
use wellspring_backup::{BackupError, Source};
use wellspring_host::client::endpoint::percent_encode;
use wellspring_host::client::{Client, ClientError, Request};

/// A server, over HTTP.
pub(super) struct ServerSource {
    client: Client,
}

impl ServerSource {
    pub(super) fn new(client: Client) -> ServerSource {
        ServerSource { client }
    }
}

fn refused(problem: &Problem, status: u16) -> BackupError {
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
        from_slice(&answer.body).map_err(|error| BackupError::Refused {
            detail: format!("the server did not send the plan of a backup ({error})"),
            status: None,
        })
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
            "log-not-found" | "another-history" => BackupError::Refused {
                detail: format!(
                    "the log {} was deleted or restored while the backup was taken; take another one",
                    log.name
                ),
                status: Some(409),
            },
            _ => refused(&problem, head.status),
        })
    }
}
