import MartletConfig
import MartletCore
import MartletHTTP

/// How a request's target changes for the upstream: `strip_prefix`, then `regex` and `to`, then `add_prefix`.
package struct TargetRewrite: Sendable {
    /// `regex` and `to`.
    struct Rule: Sendable {
        let pattern: RegularExpression
        let replacement: ReplacementTemplate

        init(_ pattern: RegularExpression, _ replacement: ReplacementTemplate) {
            self.pattern = pattern
            self.replacement = replacement
        }
    }

    private let prefix: [UInt8]
    private let rule: Rule?
    /// Normalized, without a trailing slash.
    private let added: [UInt8]
    private let paths: PathOptions

    init(stripping prefix: [UInt8], rule: Rule?, adding added: [UInt8], paths: PathOptions) {
        self.prefix = prefix
        self.rule = rule
        self.added = added
        self.paths = paths
    }

    /// The target for the upstream.
    ///
    /// - Parameters:
    ///   - path: normalized.
    ///   - query: with its question mark, or empty; it follows the query of `to`, if that has one.
    /// - Returns: `nil` for a path that no request could have, or if the expression exceeded its match limit.
    package func target(path: Span<UInt8>, query: Span<UInt8>) -> [UInt8]? {
        let stripped = PathRewrite.of(path, stripping: prefix.span)
        // "/v1" with the prefix "/v1" added to "/api" is "/api", as "/v1/" is "/api/".
        var isWhole = stripped.becomesRoot
        var rest = stripped.becomesRoot ? [.slash] : Array(path.extracting(droppingFirst: stripped.strippedBytes))
        var parameters: [UInt8] = []
        if let rule {
            switch rule.replacement.apply(rule.pattern, to: rest.span) {
            case .unmatched: break
            case .failed: return nil
            case .replaced(let path, let query):
                (rest, parameters) = (path, query)
                isWhole = false
            }
        }
        let joined = isWhole && !added.isEmpty ? added : added + rest
        var normal = ByteBuffer()
        var target: [UInt8]
        switch PathNormalizer.normalize(
            joined.span, keepsEncodedSlash: paths.keepsEncodedSlash, keepsEncodedPercent: paths.keepsEncodedPercent,
            mergesSlashes: paths.mergesSlashes, into: &normal)
        {
        case .unchanged: target = joined
        case .rewritten: target = normal.array
        case .failure: return nil
        }
        Self.append(parameters, query, to: &target)
        return target
    }

    private static func append(_ parameters: [UInt8], _ query: Span<UInt8>, to target: inout [UInt8]) {
        guard !parameters.isEmpty else {
            for index in 0..<query.count { target.append(query[index]) }
            return
        }
        target.append(UInt8(ascii: "?"))
        target += parameters
        guard query.count > 1 else { return }
        target.append(UInt8(ascii: "&"))
        for index in 1..<query.count { target.append(query[index]) }
    }
}

extension [UInt8] {
    fileprivate init(_ span: Span<UInt8>) {
        self.init(capacity: span.count) { output in for index in 0..<span.count { output.append(span[index]) } }
    }
}
