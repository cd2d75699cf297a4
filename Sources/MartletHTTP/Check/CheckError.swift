package import MartletCore

/// Why the request that a check describes is unknown.
package enum CheckError: Error, Sendable, Equatable {
    /// No field describes a request, and neither does the path.
    case undescribed
    /// A field that the description begun by others needs.
    case missing(CheckField)
    case repeated(CheckField)
    case invalid(CheckField)
    /// The field says something else than another part of the description.
    case conflict(CheckField)
    /// The message of a check by gRPC is malformed.
    case message

    /// The detailed reason for log, metrics and tests.
    package var code: ErrorCode {
        switch self {
        case .undescribed: "check.undescribed"
        case .missing: "check.field_missing"
        case .repeated: "check.field_repeated"
        case .invalid: "check.field_invalid"
        case .conflict: "check.field_conflict"
        case .message: "check.message_invalid"
        }
    }

    /// The field that the reason is about.
    package var field: CheckField? {
        switch self {
        case .undescribed, .message: nil
        case .missing(let field), .repeated(let field), .invalid(let field), .conflict(let field): field
        }
    }
}

/// What describes the request that a check is about.
package enum CheckField: UInt8, Sendable, CaseIterable {
    case forwardedMethod, forwardedProto, forwardedHost, forwardedURI
    case originalURI, originalURL, originalMethod
    /// The check's own target and method, where the target has more than the path of the endpoint.
    case ownTarget, ownMethod, ownHost
    /// A credential, which a check by gRPC may have joined with another one.
    case authorization

    /// The name for logs.
    package var name: String {
        switch self {
        case .forwardedMethod: "X-Forwarded-Method"
        case .forwardedProto: "X-Forwarded-Proto"
        case .forwardedHost: "X-Forwarded-Host"
        case .forwardedURI: "X-Forwarded-Uri"
        case .originalURI: "X-Original-URI"
        case .originalURL: "X-Original-URL"
        case .originalMethod: "X-Original-Method"
        case .ownTarget: "path"
        case .ownMethod: "method"
        case .ownHost: "Host"
        case .authorization: "Authorization"
        }
    }
}
