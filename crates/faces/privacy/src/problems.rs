//! Problem types of this face.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    SUBJECT_UNKNOWN 404 "subject-unknown" "Nothing is sealed for the data subject" Retry::No,
        "There is no key for the data subject: nothing was sealed for it, or the store of keys is not the one that had it. What was stored about it without a subject stays.",
        "Correct the name. If GET /v1/subjects/{subject} counts sealed events of it, put the newest backup of the keys back first; clear ones stay whatever is done.",
        "there is no key for student:8f14e45f: nothing is sealed for it, or another store of keys is in place; nothing was done" r#""field":"subject""#;
    ERASURE_BEGUN 409 "erasure-begun" "The erasure has begun" Retry::No,
        "The grace period of the erasure has ended, or it had none: its keys are destroyed. It cannot be cancelled.",
        "Nothing brings the data back.",
        "the erasure 4f1c09d2a87b4e6f is complete";
}
