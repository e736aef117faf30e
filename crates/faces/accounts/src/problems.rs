//! The problem types of accounts and keys.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    WRONG_PASSWORD 403 "wrong-password" "The current password is wrong" Retry::No,
        "The password sent as `current` is not the account's. Nothing was changed.",
        "Send the right one, or have an administrator set a new one.",
        "current is not the password of the account" r#""field":"current""#;
    ACCOUNT_NOT_FOUND 404 "account-not-found" "No such account" Retry::No,
        "No account has this name. It may have been deleted.",
        "Correct the name. GET /v1/accounts lists all accounts.",
        "there is no account \"ann\"";
    KEY_NOT_FOUND 404 "key-not-found" "No such API key" Retry::No,
        "No API key has this id, or it belongs to another account.",
        "Pass the key's id, not its label or secret. GET /v1/keys lists your own keys.",
        "there is no API key with the id \"nope\"; pass the key's id, not its label or secret";
    NO_ACCOUNTS 409 "no-accounts" "There are no accounts" Retry::No,
        "The server has no accounts, so there is nothing to log in to or to change.",
        "Use the server without credentials, or create the first account with POST /v1/accounts.",
        "there are no accounts, so no token is needed; POST /v1/accounts or `wellspring user add` creates the first";
    NO_TOKEN 409 "no-token" "There is no token to end" Retry::No,
        "The request carries a password or an API key; logging out ends neither.",
        "Send the token to end, or {\"everywhere\":true} to end all tokens of the account.",
        "the request carries the API key 01J8Z3; DELETE /v1/keys/01J8Z3 revokes it, with a token or a password";
    ACCOUNT_EXISTS 409 "account-exists" "The account already exists" Retry::No,
        "An account has this name. Nothing was changed.",
        "Choose another name, or change that account.",
        "there is an account \"ann\" already" r#""field":"name""#;
    ACCOUNT_DISABLED 409 "account-disabled" "The account is disabled" Retry::No,
        "The account is disabled, so no key can be created for it.",
        "Enable the account first.",
        "the account ann is disabled" r#""field":"account""#;
    LAST_ADMIN 409 "last-admin" "One account must be an administrator" Retry::No,
        "Without this account, no account could manage the others. Nothing was changed.",
        "First create another enabled account that has the role admin on everything, and a password.",
        "ann is the only administrator of everything";
    TOO_MANY_ACCOUNTS 409 "too-many-accounts" "Too many accounts" Retry::No,
        "The limit of accounts is reached.",
        "Delete accounts that are no longer needed.",
        "the limit of 10000 accounts is reached" r#""limit":10000"#;
    TOO_MANY_KEYS 409 "too-many-keys" "Too many API keys" Retry::No,
        "The limit of API keys is reached, for this account or in all.",
        "Revoke keys that are no longer needed.",
        "the limit of 100 API keys is reached" r#""limit":100"#;
    KEY_ENDED 409 "key-ended" "The API key has ended" Retry::No,
        "The key was revoked or has expired, so it cannot be replaced.",
        "Create a new key with POST /v1/keys.",
        "the key 01J8Z3 has ended; POST /v1/keys creates a new one";
}
