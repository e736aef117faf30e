//! Reading.

use super::render::{self, NoAnswer, Renderer};
use crate::CatalogueFace;
use crate::etag::etag;
use crate::fresh::fresh;
use crate::segments::{ITEM, WORD};
use crate::view::{Catalogue, State};
use std::sync::Arc;
use wellspring_host::http::content::has_version;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Request, Response, fast};
use wellspring_host::view::Live;
use wellspring_host::wire::problem::{self, Problem};

/// `GET /lookup`.
pub(crate) async fn lookup_all(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let live = fresh(&face, &request).await?;
    let is_short = match render::all(&face.folded(&live)?.read(), Renderer::ServingThread) {
        Ok(_) | Err(NoAnswer::Problem(_)) => true,
        Err(NoAnswer::TooLong) => false,
    };
    if is_short {
        return Ok(fast::serve(&face.host, &mut request, "/lookup").await);
    }
    long(&face, &request, live, render::all).await
}

/// `GET /lookup/{item}`.
pub(crate) async fn lookup(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let item = request.segment(&ITEM)?;
    fresh(&face, &request).await?;
    Ok(fast::serve(&face.host, &mut request, &format!("/lookup/{item}")).await)
}

/// `GET /search/{word}`.
pub(crate) async fn search_topics(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let word = request.segment(&WORD)?;
    let live = fresh(&face, &request).await?;
    let is_word = word.len() <= 64 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_short = match render::search(&face.folded(&live)?.read(), &word, Renderer::ServingThread)
    {
        Ok(_) | Err(NoAnswer::Problem(_)) => true,
        Err(NoAnswer::TooLong) => false,
    };
    if is_word && is_short {
        return Ok(fast::serve(&face.host, &mut request, &format!("/search/{word}")).await);
    }
    long(&face, &request, live, move |state, renderer| render::search(state, &word, renderer)).await
}

/// An answer that the fast path leaves to a dedicated thread.
async fn long(
    face: &Arc<CatalogueFace>,
    request: &Request,
    live: Arc<Live<Catalogue>>,
    render: impl FnOnce(&State, Renderer) -> Result<Arc<[u8]>, NoAnswer> + Send + 'static,
) -> Answer {
    let mut job = Job::begin(&face.host, &request.payer)?;
    let position = live.position();
    let face = Arc::clone(face);
    let answer = move || {
        let folded = face.folded(&live)?;
        let state = folded.read();
        match render(&state, Renderer::Elsewhere) {
            Ok(content) => Ok::<_, Box<Problem>>((content, etag(live.log(), state.changed_at()))),
            Err(NoAnswer::Problem(problem)) => Err(problem),
            Err(NoAnswer::TooLong) => Err(problem::INTERNAL.because("it is too long")),
        }
    };
    let (content, etag) = job.search(answer).await??;
    let answer = if has_version(request, &etag) {
        Response::empty(304)
    } else {
        Response::json(200, content.to_vec())
    };
    let answer = answer.with("etag", etag);
    Ok(answer.with("cache-control", "no-cache".to_owned()).at(position))
}
