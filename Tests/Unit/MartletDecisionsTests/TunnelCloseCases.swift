import MartletTesting

@testable import MartletDecisions

/// The gateway ends a WebSocket that a side closes at the same time.
extension TunnelCase {
    /// A side's own Close frame is in progress: each side gets one Close frame.
    static let endsWithinClose: [TunnelCase] = [
        TunnelCase(
            "within the client's Close",
            [
                (.client(WSFrame.clientCloseStart), ["up 7"]), (.end(.idle), ["close down 1001"]),
                (.client(WSFrame.clientCloseEnd), ["up 1", "fin down"]),
                (.upstream(WSFrame.serverClose), ["fin up", "finish"]),
            ]),
        TunnelCase(
            "within the upstream's Close",
            [
                (.upstream(WSFrame.serverCloseStart), ["down 3"]), (.end(.idle), ["close up 1001"]),
                (.upstream(WSFrame.serverCloseEnd), ["down 1", "fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "within the Close of both",
            [
                (.client(WSFrame.clientCloseStart), ["up 7"]), (.upstream(WSFrame.serverCloseStart), ["down 3"]),
                (.end(.revoked), []), (.client(WSFrame.clientCloseEnd), ["up 1"]),
                (.upstream(WSFrame.serverCloseEnd), ["down 1", "fin up", "fin down", "finish"]),
            ]),
        TunnelCase(
            "within the client's Close, and more follows",
            [
                (.client(WSFrame.clientCloseStart), ["up 7"]), (.end(.idle), ["close down 1001"]),
                (.client(WSFrame.clientCloseEndAndText), ["up 1", "fin down"]), (.client(WSFrame.clientText), []),
                (.upstream(WSFrame.serverText), []), (.wait(399), []), (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "within the upstream's Close, and more follows",
            [
                (.upstream(WSFrame.serverCloseStart), ["down 3"]), (.end(.expired), ["close up 1001"]),
                (.upstream(WSFrame.serverCloseEndAndText), ["down 1", "fin up"]), (.upstream(WSFrame.serverText), []),
                (.client(WSFrame.clientText), []), (.wait(399), []), (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "within the client's Close that does not end",
            [
                (.client(WSFrame.clientCloseStart), ["up 7"]), (.end(.idle), ["close down 1001"]), (.wait(199), []),
                (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "within the upstream's Close that does not end",
            [
                (.upstream(WSFrame.serverCloseStart), ["down 3"]), (.end(.idle), ["close up 1001"]), (.wait(199), []),
                (.wait(1), ["abort"]),
            ]),
        TunnelCase(
            "within the header of a Close, which is not forwarded any more",
            [
                (.client([0x88]), []), (.upstream([0x88]), []), (.end(.idle), ["close up 1001", "close down 1001"]),
                (.client(WSFrame.clientCloseRest), ["fin down"]),
                (.upstream(WSFrame.serverCloseRest), ["fin up", "finish"]),
            ]),
        TunnelCase(
            "a violation of the client within the upstream's Close",
            [
                (.upstream(WSFrame.serverCloseStart), ["down 3"]), (.client(WSFrame.serverText), ["close up 1002"]),
                (.upstream(WSFrame.serverCloseEnd), ["down 1", "fin up"]),
            ]),
    ]

    /// What the upstream sends after the gateway's Close to the client is followed, so that its own Close is noticed.
    static let closesAfterClose: [TunnelCase] = [
        TunnelCase(
            "the upstream's Close in the same read",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.expired), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndClose), ["down 1", "close down 4401", "fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "the upstream's Close after another frame in the same read",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.idle), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndTextAndClose), ["down 1", "close down 1001", "fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "the start of the upstream's Close in the same read",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.idle), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndCloseStart), ["down 1", "close down 1001"]),
                (.upstream(WSFrame.serverCloseEnd), ["fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "the first byte of the upstream's Close in the same read",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.idle), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndCloseByte), ["down 1", "close down 1001"]),
                (.upstream(WSFrame.serverCloseRest), ["fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "a violation in the same read",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.idle), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndClientText), ["down 1", "close down 1001"]),
                (.client(WSFrame.clientClose), ["fin down"]), (.wait(1000), ["finish"]),
            ]),
        TunnelCase(
            "the client's Close in the same read",
            [
                (.client(WSFrame.clientTextStart), ["up 7"]), (.end(.idle), ["close down 1001"]),
                (.client(WSFrame.clientTextEndAndClose), ["up 1", "close up 1001", "fin down"]),
                (.upstream(WSFrame.serverClose), ["fin up", "finish"]),
            ]),
    ]
}
