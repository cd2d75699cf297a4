package import MartletCore

/// Why a message is rejected; the connection cannot be used afterwards.
///
/// A reason that applies to responses too has its upstream counterpart at `rawValue | 64`.
package enum HeadError: UInt8, Error, Sendable, CaseIterable {
    case badRequestLine = 0
    case bareLF, bareCR, obsFold, spaceBeforeColon, badFieldName, badFieldValue
    case transferEncodingWithContentLength, badTransferEncoding, transferEncodingInHTTP10
    case badContentLength, repeatedContentLength
    case headTooLarge, tooManyFields, badVersion, badChunk, badTrailer, badConnection
    case hostMissing, hostRepeated, badHost, hostMismatch
    case authorizationRepeated, badExpectation, uriTooLong, pathAmbiguous, methodCase

    case upstreamBadStatusLine = 64
    case upstreamBareLF, upstreamBareCR, upstreamObsFold, upstreamSpaceBeforeColon
    case upstreamBadFieldName, upstreamBadFieldValue
    case upstreamTransferEncodingWithContentLength, upstreamBadTransferEncoding, upstreamTransferEncodingInHTTP10
    case upstreamBadContentLength, upstreamRepeatedContentLength
    case upstreamHeadTooLarge, upstreamTooManyFields, upstreamBadVersion, upstreamBadChunk, upstreamBadTrailer
    case upstreamBadConnection

    /// The same reason for an upstream's response.
    package var upstream: HeadError { HeadError(rawValue: rawValue | 64) ?? .upstreamBadStatusLine }

    /// The status that the client gets: 502 for an upstream error.
    package var status: Int {
        switch self {
        case .headTooLarge, .tooManyFields: 431
        case .uriTooLong: 414
        default: rawValue < 64 ? 400 : 502
        }
    }

    /// The detailed reason for log, metrics and tests.
    package var code: ErrorCode { ErrorCode(rawValue: (rawValue < 64 ? "request." : "upstream.") + reason) }

    private var reason: String {
        switch self {
        case .badRequestLine: "bad_request_line"
        case .upstreamBadStatusLine: "bad_status_line"
        case .bareLF, .upstreamBareLF: "bare_lf"
        case .bareCR, .upstreamBareCR: "bare_cr"
        case .obsFold, .upstreamObsFold: "obs_fold"
        case .spaceBeforeColon, .upstreamSpaceBeforeColon: "space_before_colon"
        case .badFieldName, .upstreamBadFieldName: "bad_field_name"
        case .badFieldValue, .upstreamBadFieldValue: "bad_field_value"
        case .transferEncodingWithContentLength, .upstreamTransferEncodingWithContentLength:
            "transfer_encoding_with_content_length"
        case .badTransferEncoding, .upstreamBadTransferEncoding: "bad_transfer_encoding"
        case .transferEncodingInHTTP10, .upstreamTransferEncodingInHTTP10: "transfer_encoding_in_http10"
        case .badContentLength, .upstreamBadContentLength: "bad_content_length"
        case .repeatedContentLength, .upstreamRepeatedContentLength: "repeated_content_length"
        case .headTooLarge, .upstreamHeadTooLarge: "head_too_large"
        case .tooManyFields, .upstreamTooManyFields: "too_many_fields"
        case .badVersion, .upstreamBadVersion: "bad_version"
        case .badChunk, .upstreamBadChunk: "bad_chunk"
        case .badTrailer, .upstreamBadTrailer: "bad_trailer"
        case .badConnection, .upstreamBadConnection: "bad_connection"
        case .hostMissing: "host_missing"
        case .hostRepeated: "host_repeated"
        case .badHost: "bad_host"
        case .hostMismatch: "host_mismatch"
        case .authorizationRepeated: "authorization_repeated"
        case .badExpectation: "bad_expectation"
        case .uriTooLong: "uri_too_long"
        case .pathAmbiguous: "path_ambiguous"
        case .methodCase: "method_case"
        }
    }
}
