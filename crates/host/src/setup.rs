//! Why the server, or a part of it, cannot be set up.

wellspring_readable::sentence_error! {
    /// A setting is wrong, or what it names cannot be opened. For the operator, who can change it.
    pub SetupError
}

impl From<wellspring_client::UnusableClient> for SetupError {
    fn from(error: wellspring_client::UnusableClient) -> SetupError {
        SetupError::new(error.to_string())
    }
}
