//! Why a record becomes no event.

wellspring_readable::sentence_error! {
    /// The fault of a record, as the reject log keeps it.
    pub RejectReason
}
