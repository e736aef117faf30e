//! The group that the nodes are themselves: founding it, and joining it.

use super::{ClusterFace, json};
use bytes::Bytes;
use std::sync::Arc;
use wellspring_host::cluster::founding::{MAX_BODY_BYTES, read};
use wellspring_host::http::content::expect_json;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request};
use wellspring_host::wire::problem::Problem;

/// `GET /v1/cluster/member`.
pub(super) async fn member(face: Arc<ClusterFace>, _request: Box<Request>) -> Answer {
    json(&face.cluster()?.member()?)
}

/// `POST /v1/cluster/found`: another node tells this one its group.
pub(super) async fn found(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = content_of(&mut request).await?;
    let (cluster, told) = (Arc::clone(face.cluster()?), read(&content)?);
    json(&elsewhere(move || cluster.found(&told)).await??)
}

/// `POST /v1/cluster/init`: this node belongs to a group, so it was done, or cannot be.
pub(super) async fn init(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = content_of(&mut request).await?;
    json(&face.cluster()?.init(&read(&content)?).await?)
}

/// `POST /v1/cluster/join`. Answered by the leader of the log `system`, which orders.
pub(super) async fn join(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = content_of(&mut request).await?;
    let cluster = Arc::clone(face.cluster()?);
    request.still_may()?;
    json(&cluster.join(&read(&content)?).await?)
}

pub(super) async fn content_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    expect_json(request)?;
    request.content(MAX_BODY_BYTES).await
}
