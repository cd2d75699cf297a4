internal import MartletCore
package import MartletDecisions
package import MartletHTTP
package import MartletResponder
internal import MartletRouter

/// The head that an upstream would get, without the identity headers.
package struct ExplainedHead {
    /// Its fields, each as its name in lower case, a colon and its value, and once more without the value.
    private var lines: Set<String> = []

    /// Has it written as for a request that is forwarded.
    ///
    /// - Parameters:
    ///   - head: of the client; lent `inout`, as the writer does it.
    ///   - bytes: those that the head was parsed from.
    ///   - path: in its normal form.
    ///   - hasCookie: whether the request has cookies of the gateway.
    ///   - isSecure: whether the client uses TLS.
    /// - Throws: why no upstream gets it.
    package init(
        _ head: inout RequestHead, _ bytes: [UInt8], path: [UInt8], route: Int, upstream: Int,
        consumesCredential: Bool, hasCookie: Bool, isSecure: Bool, _ snapshot: Snapshot
    ) throws(Failure) {
        var origin = DownstreamOrigin()
        origin.rules.isSecure = isSecure
        var trailers = RequestTrailers()
        var out = UpstreamHead()
        let written = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe path.withUnsafeBufferPointer { normalized in
                let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
                let request = unsafe ForwardedRequest(
                    route: route, upstream: upstream, consumesCredential: consumesCredential,
                    expectsContinue: head.expectsContinue, hasCookie: hasCookie, isStream: false,
                    isPathUnchanged: normalized.elementsEqual(bytes[head.path]), framing: head.framing,
                    path: normalized, requestID: none, upgrade: none, identity: none)
                return unsafe UpstreamHeadWriter.write(
                    request, &head, bytes, from: &origin, snapshot, trailers: &trailers, into: &out)
            }
        }
        if written.isRejected { throw .malformed(.rewriteRejected) }
        if written.isLoop { throw .loopDetected }
        for line in unsafe Array(out.bytes).split(whereSeparator: { $0 == 0x0D || $0 == 0x0A }) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            lines.insert(Self.text(line[..<colon], line[(colon + 1)...]))
            lines.insert(Self.text(line[..<colon], []))
        }
    }

    /// Whether a field of the client is in it. What is left of several cookies counts as the field.
    package func has(_ field: HeadField, _ bytes: [UInt8]) -> Bool {
        let value = field.known == .cookie ? [] : bytes[field.value.bounds]
        return lines.contains(Self.text(bytes[field.name.bounds], value))
    }

    /// Whether a proxy that asks about a request has to hold a field of it back (``RequestFieldFilter``).
    package static func isForNoAPI(
        _ field: HeadField, _ bytes: [UInt8], route: Int, consumesCredential: Bool, _ snapshot: Snapshot
    ) -> Bool {
        var rules = snapshot.compiledRoutes[route].rewriting
        if !consumesCredential { rules.remove(.dropsAuthorization) }
        var filter = RequestFieldFilter(rules)
        return unsafe bytes.withUnsafeBufferPointer { unsafe filter.isForNoAPI(field, $0, snapshot, route) }
    }

    private static func text(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let trimmed = value.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
        return String(decoding: name, as: UTF8.self).lowercased() + ":" + String(decoding: trimmed, as: UTF8.self)
    }
}
