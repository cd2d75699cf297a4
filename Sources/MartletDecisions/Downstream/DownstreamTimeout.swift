/// What the deadline of a downstream connection means.
package enum DownstreamTimeout: Equatable {
    case close
    case failHandshake
    case closeFrames
    /// A stream whose response is not read.
    case checkWriting
    /// A head that has begun gets a response.
    case rejectHead
    /// The request has waited as long as it may.
    case endWait
    case checkExchange

    package init(in phase: DownstreamPhase, isStream: Bool, isReceivingHead: Bool) {
        switch phase {
        case .lingering, .proxyHeader: self = .close
        case .handshake: self = .failHandshake
        case .frames: self = .closeFrames
        case .head where isStream: self = .checkWriting
        case .head: self = isReceivingHead ? .rejectHead : .close
        case .waiting: self = .endWait
        case .exchange: self = .checkExchange
        }
    }
}
