internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

/// What an upstream gets of a request that is explained.
extension RequestExplainer {
    func explainUpstream(
        _ request: Request, _ path: [UInt8], _ route: Route, _ explanation: inout RequestExplanation
    ) throws(Stop) {
        explanation.upstream = upstream(of: route, explanation)
        explanation.removedFields =
            route.servesChecksOnly
            ? withheldFields(of: request, route, explanation)
            : fields(of: request, missingIn: try headForUpstream(request, path, route, explanation), explanation)
        explanation.upstreamPath = try upstreamPath(path, route)
    }

    /// The upstream that the request is sent to, if that does not depend on more than the explanation knows.
    private func upstream(of route: Route, _ explanation: RequestExplanation) -> Int? {
        guard route.split != nil else { return route.upstream }
        // The subject of an account is known once it exists.
        guard let principal = explanation.principal, !explanation.isNewAccount else { return nil }
        return route.upstream(for: SubjectRevocationID.of(principal.subject))
    }

    private func upstreamPath(_ path: [UInt8], _ route: Route) throws(Stop) -> String {
        if let rewrite = route.rewrite {
            guard let target = rewrite.target(path: path.span, query: [UInt8]().span) else {
                throw Stop(.malformed(.rewriteRejected))
            }
            return String(decoding: target, as: UTF8.self)
        }
        let rewrite = route.rewrite(path: path.span)
        return rewrite.becomesRoot ? "/" : String(decoding: path.dropFirst(rewrite.strippedBytes), as: UTF8.self)
    }

    /// The head that an upstream gets, without the identity headers.
    private func headForUpstream(
        _ request: Request, _ path: [UInt8], _ route: Route, _ explanation: RequestExplanation
    ) throws(Stop) -> [UInt8] {
        var head = head(of: request)
        var origin = DownstreamOrigin()
        origin.rules.isSecure = request.client.isSecure
        var trailers = RequestTrailers()
        var out = ByteBuffer()
        let written = unsafe request.bytes.withUnsafeBufferPointer { bytes in
            unsafe path.withUnsafeBufferPointer { normalized in
                let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
                let forwarded = unsafe ForwardedRequest(
                    route: route.index, upstream: explanation.upstream ?? route.upstream,
                    consumesCredential: explanation.consumesCredential,
                    expectsContinue: head.expectsContinue, hasCookie: request.hasCookie, isStream: false,
                    isPathUnchanged: path == request.path, framing: head.framing, path: normalized, requestID: none,
                    upgrade: none, identity: none)
                return unsafe UpstreamHeadWriter.write(
                    forwarded, &head, bytes, from: &origin, snapshot, trailers: &trailers, into: &out)
            }
        }
        if written.isRejected { throw Stop(.malformed(.rewriteRejected)) }
        if written.isLoop { throw Stop(.loopDetected) }
        return out.array
    }

    /// The names of the client's fields that are not in a head. The credential is reported separately, and the upstream
    /// gets a `Host` in any case.
    private func fields(
        of request: Request, missingIn head: [UInt8], _ explanation: RequestExplanation
    ) -> [String] {
        func text(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> String {
            String(decoding: name, as: UTF8.self).lowercased() + ":" + String(decoding: value, as: UTF8.self)
        }
        var kept: Set<String> = []
        for line in head.split(whereSeparator: { $0 == 0x0D || $0 == 0x0A }) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = line[(colon + 1)...].trimmed
            kept.insert(text(line[..<colon], value))
            // What is left of several cookies is another value.
            kept.insert(text(line[..<colon], []))
        }
        return request.fields.compactMap { field in
            guard field.known != .host, field.known != .authorization || !explanation.consumesCredential else {
                return nil
            }
            let name = request.bytes[field.name.bounds]
            let value = field.known == .cookie ? [] : request.bytes[field.value.bounds].trimmed
            return kept.contains(text(name, value)) ? nil : String(decoding: name, as: UTF8.self)
        }
    }

    /// The names of the client's fields that a proxy which asks has to hold back.
    private func withheldFields(
        of request: Request, _ route: Route, _ explanation: RequestExplanation
    ) -> [String] {
        var rules = snapshot.compiledRoutes[route.index].rewriting
        if !explanation.consumesCredential { rules.remove(.dropsAuthorization) }
        return unsafe request.bytes.withUnsafeBufferPointer { bytes in
            request.fields.compactMap { field in
                var filter = RequestFieldFilter(rules)
                guard field.known != .authorization || !explanation.consumesCredential,
                    unsafe filter.isForNoAPI(field, bytes, snapshot, route.index)
                else { return nil }
                return unsafe String(decoding: bytes[field.name], as: UTF8.self)
            }
        }
    }
}

extension ArraySlice<UInt8> {
    /// Without spaces and tabs at either end.
    fileprivate var trimmed: ArraySlice<UInt8> {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let rest = drop(while: isBlank)
        return rest[..<(rest.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? rest.startIndex)]
    }
}
