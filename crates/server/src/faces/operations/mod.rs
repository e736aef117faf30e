//! What operators and their programs ask: health, figures, views, the API's own description.

pub(crate) mod health;
pub(crate) mod openapi;
pub(crate) mod problem_page;
pub(crate) mod views;

use crate::http::face::Face;
use crate::http::routes::routes;

/// The face.
pub(crate) static FACE: Face = Face {
    name: "operations",
    routes: routes! {
        GET "/v1/views" Node Account views::list: "How far each view is: state, position, lag." ? [] "" => "Views";
        GET "/health" Node Public health::health: "Whether the process is healthy." ? [] "" => "Health";
        GET "/health/live" Node Public health::health: "Whether the process lives." ? [] "" => "Health";
        GET "/health/ready" Node Public health::ready: "Whether the process takes requests." ? [] "" => "Health";
        GET "/metrics" Node Operator health::metrics: "Figures in the Prometheus text format." ? [] "" => "";
        GET "/openapi.json" Node Public openapi::document: "This document." ? [] "" => "";
        GET "/problems" Node Public problem_page::index: "All problem types, each with its status and title: JSON, text/plain or text/html." ? [] "" => "";
        GET "/problems/{slug}" Node Public problem_page::problem: "What a problem type means, what to do, and whether trying again helps: JSON, text/plain or text/html." ? [] "" => "";
    },
    render: |problem| problem,
};
