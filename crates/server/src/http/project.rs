//! `POST /v1/project`: one read for all projections of a request.

use super::count_only::count;
use super::fold::{Folding, fold};
use super::params::{Params, expect_json, freshen, negotiate};
use super::problem::{self, Problem};
use super::{Answer, JSON, Request, Response, Shell};
use std::sync::Arc;
use wellspring_log::RecordView;
use wellspring_types::{DataKind, limits};
use wellspring_views::project::{FoldEvent, ProjectError, ProjectErrorKind, Projections};

/// Folds what the projections ask for.
pub(crate) async fn project(shell: Arc<Shell>, mut request: Request) -> Answer {
    let params = Params::of(&request, &[])?;
    negotiate(&request, &[JSON])?;
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    // Waits with the body, which is charged, and not with what it is parsed into.
    freshen(&request, &params, request.log()?).await?;
    let projections = Projections::parse(&body).map_err(of_error)?;
    if let Some((answer, head)) = count(&shell, &request, &projections).await? {
        return Ok(Response::json(200, answer).at(head));
    }
    let (query, after) = (projections.union_query(), projections.after());
    let (folded, head) = fold(&shell, &request, &query, after, Running(projections)).await?;
    let answer = folded.0.finish(head).map_err(of_error)?;
    Ok(Response::json(200, answer).at(head))
}

/// The projections while they are folded.
struct Running(Projections);

impl Folding for Running {
    fn fold(&mut self, event: &RecordView<'_>) {
        let mut tags = [""; limits::MAX_TAGS];
        let mut count = 0;
        for (slot, tag) in tags.iter_mut().zip(event.tags()) {
            *slot = tag;
            count += 1;
        }
        self.0.fold(&FoldEvent {
            position: event.position(),
            event_type: event.event_type(),
            tags: &tags[..count],
            data: event.data(),
            is_json: event.kind() == DataKind::Json,
            recorded_at_us: event.recorded_at_us(),
        });
    }

    fn is_done(&self) -> bool {
        self.0.failure().is_some()
    }
}

pub(super) fn of_error(error: ProjectError) -> Box<Problem> {
    let detail = error.to_string();
    let problem = match error.kind {
        ProjectErrorKind::MalformedJson { line, column } => problem::MALFORMED_JSON
            .because(detail)
            .with("line", line.to_string())
            .with("column", column.to_string()),
        ProjectErrorKind::Limit { limit } => problem::TOO_LARGE.because(detail).limit(limit as u64),
        ProjectErrorKind::WrongType
        | ProjectErrorKind::UnknownField
        | ProjectErrorKind::Missing
        | ProjectErrorKind::Rule => problem::INVALID.because(detail),
    };
    problem.field(error.field)
}
