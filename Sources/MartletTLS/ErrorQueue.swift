private import COpenSSL

/// The errors that OpenSSL keeps for this thread.
enum ErrorQueue {
    /// Removes what earlier calls have left, so that the next one's result is its own. It is mostly empty, which takes a
    /// tenth of the time to see that it takes to empty it.
    static func clear() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }
}
