package com.tencent.mm.opensdk.modelmsg

import com.tencent.mm.opensdk.modelbase.BaseReq
import com.tencent.mm.opensdk.modelbase.BaseResp

class SendAuth {
    class Req : BaseReq() {
        @JvmField var scope: String? = null
        @JvmField var state: String? = null
    }

    class Resp : BaseResp() {
        @JvmField var code: String? = null
        @JvmField var state: String? = null
    }
}
