internal import MartletCore

/// What the session keeps of one stream; used again for another one after it.
final class HTTP2Stream {
    var id: Int32 = 0
    /// Body bytes that flow control holds back.
    var unsent = ByteBuffer()
    /// Body bytes that have gone out.
    var sent = 0
    /// `name: value` lines that follow the body.
    var trailers = ByteBuffer()
    /// The owner has been told of it: it is told of its end too.
    var isAnnounced = false
    /// What still arrives is thrown away.
    var isDeaf = false
    /// The request (server) or the final answer (client) has come.
    var hasHead = false
    var interims = 0
    /// The peer's END_STREAM has come.
    var hasPeerEnded = false
    /// The owner's final head has been submitted.
    var isAnswered = false
    /// The owner will send no more.
    var isEnding = false
    /// Our END_STREAM has gone out.
    var isEnded = false
    /// nghttp2 waits to be told that there is more to send.
    var isDeferred = false
    /// A reset without an error that waits for the rest of the answer.
    var resetsAtEnd = false
    /// Why it was reset here; what nghttp2 tells as its end may be another thing.
    var failure: HTTP2Code?
    /// The request is a call of gRPC, as far as its head was read; only known of refused ones.
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
        isAnnounced = false
        isDeaf = false
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
