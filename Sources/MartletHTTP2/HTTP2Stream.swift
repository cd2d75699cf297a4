internal import MartletCore

/// The session's state of one stream; reused for later streams.
final class HTTP2Stream {
    var id: Int32 = 0
    /// Body bytes that wait for flow control.
    var unsent = ByteBuffer()
    /// Body bytes that were sent.
    var sent = 0
    /// `name: value` lines that follow the body.
    var trailers = ByteBuffer()
    /// The owner got an event of the stream, so it gets `.closed` too.
    var isKnownToOwner = false
    /// Further input is discarded.
    var discardsInput = false
    /// The request (server) or the final response (client) was received.
    var hasHead = false
    var interims = 0
    /// The peer's END_STREAM was received.
    var hasPeerEnded = false
    /// The owner's final head was submitted.
    var isAnswered = false
    /// The owner has submitted the end of its message.
    var isEnding = false
    /// Our END_STREAM was sent.
    var isEnded = false
    /// nghttp2 waits for `nghttp2_session_resume_data`.
    var isDeferred = false
    /// A reset with NO_ERROR follows the rest of the response.
    var resetsAtEnd = false
    /// Why it was reset here; the code that nghttp2 reports may differ.
    var failure: HTTP2Code?
    /// The request is a gRPC call; only set for rejected ones.
    var isGRPC = false
    /// The request asked for a tunnel (RFC 8441).
    var isTunnel = false
    var method = Method.other

    enum Method { case head, connect, other }

    func clear(_ id: Int32) {
        self.id = id
        unsent.removeAll()
        sent = 0
        trailers.removeAll()
        isKnownToOwner = false
        discardsInput = false
        hasHead = false
        interims = 0
        hasPeerEnded = false
        isAnswered = false
        isEnding = false
        isEnded = false
        isDeferred = false
        resetsAtEnd = false
        failure = nil
        isGRPC = false
        isTunnel = false
        method = .other
    }
}
