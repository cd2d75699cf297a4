package import MartletHTTP

/// Preflights: a browser asks with OPTIONS whether a page may send another request (Fetch standard, CORS protocol).
extension RouteTable {
    /// The route of the request that a preflight asks about, if that route has rules for pages of other origins.
    ///
    /// The method that counts is the one that is asked about. Where no route allows it, the first route for the host and
    /// the path that has such rules responds, so that the browser learns which methods there are.
    ///
    /// - Parameters:
    ///   - method: the value of `Access-Control-Request-Method`.
    ///   - head: that of the preflight; lent `inout`, though it is only read.
    ///   - bytes: those that the head was parsed from.
    ///   - path: normalized.
    package func preflightRoute(
        method: Span<UInt8>, _ head: inout RequestHead, _ bytes: Span<UInt8>, path: Span<UInt8>
    ) -> Int? {
        let methods = self.methods.set(of: method)
        let found = match(
            after: -1, methods: methods, authority: bytes.extracting(head.authority.bounds), path: path)
        switch resolve(found, methods: methods, &head, bytes, path: path) {
        case .route(let index): return routes[index].crossOrigin == nil ? nil : index
        case .methodNotAllowed: return firstCrossOriginRoute(&head, bytes, path: path)
        case .none, .failed: return nil
        }
    }

    /// The first route with such rules, whatever its methods.
    private func firstCrossOriginRoute(
        _ head: inout RequestHead, _ bytes: Span<UInt8>, path: Span<UInt8>
    ) -> Int? {
        var last = -1
        while true {
            let found = match(
                after: last, methods: .any, authority: bytes.extracting(head.authority.bounds), path: path)
            guard case .route(let index) = resolve(found, methods: .any, &head, bytes, path: path) else { return nil }
            if routes[index].crossOrigin != nil { return index }
            last = index
        }
    }
}
