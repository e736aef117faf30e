//! The kinds of problems of accounts and keys.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    WRONG_PASSWORD 403 "wrong-password" "The password is not the account's" Retry::No,
        "The password that was sent as the current one is not it. Nothing was changed.",
        "Send the right one, or have an admin set a new one.";
    ACCOUNT_NOT_FOUND 404 "account-not-found" "There is no such account" Retry::No,
        "There is no account of this name; there may have been.",
        "GET /v1/accounts lists those there are.";
    KEY_NOT_FOUND 404 "key-not-found" "There is no such API key" Retry::No,
        "There is no API key of this id, or it is another account's.",
        "GET /v1/keys lists one's own. It is the id that is asked for, not the secret.";
    NO_ACCOUNTS 409 "no-accounts" "There are no accounts" Retry::No,
        "The server has no accounts, so there is none to log in to or to change.",
        "Nothing is needed to use it. POST /v1/accounts makes the first account.";
    NO_TOKEN 409 "no-token" "There is no token to end" Retry::No,
        "The request shows a password or a key, and neither ends by logging out.",
        "Send the token that is to end, or {\"everywhere\":true} for all of the account's.";
    ACCOUNT_EXISTS 409 "account-exists" "There is an account of this name" Retry::No,
        "There is an account of this name. Nothing was changed.",
        "Choose another name, or change that account.";
    ACCOUNT_DISABLED 409 "account-disabled" "The account is disabled" Retry::No,
        "The account is disabled, so no key can be made for it.",
        "Enable it first.";
    LAST_ADMIN 409 "last-admin" "Somebody has to be an admin" Retry::No,
        "Without this account no one could manage the others. Nothing was changed.",
        "Make another enabled admin of everything with a password first.";
    TOO_MANY_ACCOUNTS 409 "too-many-accounts" "There are as many accounts as may be" Retry::No,
        "There are as many accounts as there may be.",
        "Delete those of no use.";
    TOO_MANY_KEYS 409 "too-many-keys" "There are as many API keys as may be" Retry::No,
        "There are as many API keys as there may be, of this account or in all.",
        "Revoke those of no use.";
    KEY_ENDED 409 "key-ended" "The API key has ended" Retry::No,
        "The key was revoked or has expired, so nothing can take its place.",
        "Make a new one with POST /v1/keys.";
}
