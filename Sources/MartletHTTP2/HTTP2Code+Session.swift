internal import CNghttp2

extension HTTP2Code {
    /// The error code for a failure of nghttp2.
    init(failure: Int) {
        switch Int32(truncatingIfNeeded: failure) {
        case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: self = .protocolError
        case NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_SETTINGS.rawValue,
            NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue:
            self = .enhanceYourCalm
        default: self = .internalError
        }
    }

    /// Whether a client can cause a reset with this code by what it sends; such resets count like its own.
    var isProvoked: Bool {
        switch self {
        case .protocolError, .flowControlError, .streamClosed, .frameSizeError, .refusedStream, .enhanceYourCalm: true
        default: false
        }
    }
}
