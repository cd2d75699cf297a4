internal import MartletAuthenticator
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder

extension RequestExplainer {
    /// Ends the explanation: the request goes no further.
    struct Stop: Error {
        let failure: Failure
        /// What was unavailable, where that is the reason.
        let cause: String
        /// Whether a 401 offers Basic.
        let offersBasic: Bool

        init(_ failure: Failure, cause: String = "", offersBasic: Bool = false) {
            self.failure = failure
            self.cause = cause
            self.offersBasic = offersBasic
        }
    }

    /// The parts of a head that the phases need.
    struct Request {
        let method: [UInt8]
        let authority: [UInt8]
        let path: [UInt8]
        /// With its question mark, or empty.
        let query: [UInt8]
        let bytes: [UInt8]
        let fields: [HeadField]
        let received: ReceivedHead
        var client: ClientSide
        /// That of ``client``, which borrows it.
        let certificate: ClientCertificateBytes?
        /// It has cookies of the gateway, which the upstream does not get.
        var hasCookie = false
    }
}
