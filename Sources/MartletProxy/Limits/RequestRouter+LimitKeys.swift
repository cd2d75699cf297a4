internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletTraffic

/// What limits count requests by.
extension RequestRouter {
    /// What a limit counts a request by.
    mutating func key(
        of limit: PlannedLimit, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> RateKey {
        var builder = limit.keyStart
        unsafe add(limit, exchange, bytes, to: &builder, &exchanges, &downstreams, &context)
        return builder.build()
    }

    /// The same for the store.
    mutating func storeKey(
        of limit: PlannedLimit, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> [UInt8] {
        var builder = StoreKeyBuilder(limit.nameBytes)
        unsafe add(limit, exchange, bytes, to: &builder, &exchanges, &downstreams, &context)
        return builder.bytes
    }

    @inline(__always)
    private mutating func add(
        _ limit: PlannedLimit, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        to builder: inout some LimitKeyBuilding, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        for index in limit.parts.indices {
            switch limit.parts[index] {
            case .address: addAddress(exchange, to: &builder, &exchanges, &downstreams)
            case .host: unsafe builder.add(host: bytes[head.authority])
            case .route: unsafe limit.routeBytes.withUnsafeBufferPointer { unsafe builder.add($0) }
            case .header(let number): unsafe addHeader(limit.headers[number], bytes, to: &builder)
            case .subject:
                let subject = exchanges[exchange].credential.subject
                if subject == 0 { builder.addMissing() } else { builder.add(hash: subject) }
            case .provider:
                let provider = Int(exchanges[exchange].credential.provider)
                if context.snapshot.providerTexts.indices.contains(provider) {
                    unsafe context.snapshot.providerTexts[provider].withUnsafeBufferPointer {
                        unsafe builder.add($0)
                    }
                } else {
                    builder.addMissing()
                }
            }
        }
    }

    /// Adds the client's address: that of the peer, or of the client that trusted proxies name.
    @inline(__always)
    private func addAddress(
        _ exchange: Handle<Exchange>, to builder: inout some LimitKeyBuilding, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections
    ) {
        // Borrowed where they are: an array that a slab lends is retained.
        let lent = unsafe exchanges.all.address(of: exchange)
        if unsafe lent.pointee.record.forwardedNetwork.isEmpty {
            let downstream = unsafe downstreams.all.address(of: lent.pointee.downstream)
            unsafe builder.add(address: downstream.pointee.origin.address.bytes.span)
        } else {
            unsafe builder.add(address: lent.pointee.record.forwardedNetwork.span)
        }
    }

    /// Adds the value of the first field with a name.
    private mutating func addHeader(
        _ name: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>, to builder: inout some LimitKeyBuilding
    ) {
        for index in 0..<head.fields.count {
            let range = head.fields[index].name
            guard range.count == name.count else { continue }
            let field = unsafe bytes[range]
            var isEqual = true
            for position in 0..<name.count where isEqual {
                let byte = unsafe field[position]
                isEqual = (byte &- 0x41 < 26 ? byte | 0x20 : byte) == name[position]
            }
            if isEqual { return unsafe builder.add(bytes[head.fields[index].value]) }
        }
        builder.addMissing()
    }
}
