// Tensor cores, for kernels/tensor.cuh: fp16, and products of fragments that the 32 threads of a warp hold together.

static float fromHalf(unsigned h) {
	static float *table;
	if (!table) {
		table = new float[1 << 16];
		for (unsigned i = 0; i < 1 << 16; i++) {
			int e = i >> 10 & 31, m = i & 1023;
			float x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24);
			table[i] = i >> 15 ? -x : x;
		}
	}
	return table[h & 0xffff];
}

// toHalf rounds to nearest, ties to even.
static unsigned toHalf(float x) {
	unsigned sign = (unsigned)__float_as_int(x) >> 16 & 0x8000;
	float a = fabsf(x);
	if (!(a < 65520)) return sign | (a != a ? 0x7e00 : 0x7c00);
	int e;
	frexpf(a, &e);
	if (a == 0 || e < -13) return sign | (unsigned)nearbyintf(ldexpf(a, 24)); // denormal; 1024 of them make the first normal number
	unsigned m = (unsigned)nearbyintf(ldexpf(a, 11 - e));           // 1024 ... 2048
	return sign | (((unsigned)(e + 14) << 10) + m - 1024);
}

static unsigned pack(float x, float y) { return toHalf(x) | toHalf(y) << 16; }
static void unpack(unsigned h, float &x, float &y) { x = fromHalf(h), y = fromHalf(h >> 16); }
static float power2(float x) {
	float y = exp2f(x);
	return y < 1.17549435e-38f ? 0 : y;
}

union Fragment {
	float x[12];
	const half16 *row;
};
static Fragment fragments[MOST_THREADS][2]; // by the parity of a thread's exchanges

// exchange gives the other threads of the warp what f has written, and returns the warp's fragments.
template <class F> static Fragment (*exchange(F f))[2] {
	int me = current, parity = fibers[me].shuffles++ & 1;
	f(fragments[me][parity]);
	pause();
	return (Fragment(*)[2])&fragments[me & ~31][parity];
}

static bool __any_sync(unsigned, bool x) {
	auto all = exchange([&](Fragment &f) { f.x[0] = x; });
	for (int i = 0; i < 32; i++)
		if (all[i][0].x[0] != 0) return true;
	return false;
}

static void loadFragments(unsigned r[4], const half16 *row) {
	int lane = threadIdx.x % 32;
	auto all = exchange([&](Fragment &f) { f.row = row; });
	for (int i = 0; i < 4; i++) {
		const half16 *from = all[i * 8 + lane / 4][0].row + lane % 4 * 2;
		r[i] = from[0] | (unsigned)from[1] << 16;
	}
}

static void loadTransposed(unsigned r[4], const half16 *row) {
	int lane = threadIdx.x % 32;
	auto all = exchange([&](Fragment &f) { f.row = row; });
	for (int i = 0; i < 4; i++) {
		const half16 *one = all[i * 8 + lane % 4 * 2][0].row, *two = all[i * 8 + lane % 4 * 2 + 1][0].row;
		r[i] = one[lane / 4] | (unsigned)two[lane / 4] << 16;
	}
}

// sum adds as tensor cores do: every term cut, towards 0, to 2^-25 of the power of two below the largest, and the sum to 24 bits (Khattak and
// Mikaitis, arXiv 2512.07004, for Hopper; earlier ones take 8 products at a time, as here).
static float sum(float c, const float terms[8]) {
	double most = fabs((double)c);
	for (int i = 0; i < 8; i++) most = fmax(most, fabs((double)terms[i]));
	if (!(most > 0) || std::isinf(most)) {
		for (int i = 0; i < 8; i++) c += terms[i];
		return c;
	}
	uint64_t bits;
	memcpy(&bits, &most, 8);
	int e = (int)(bits >> 52) - 1023;
	auto power = [](int n) {
		uint64_t b = (uint64_t)(n + 1023) << 52;
		double d;
		memcpy(&d, &b, 8);
		return d;
	};
	double up = power(25 - e);
	int64_t all = (int64_t)(c * up);
	for (int i = 0; i < 8; i++) all += (int64_t)(terms[i] * up);
	int shift = 0;
	while (llabs(all) >> shift >= 1 << 24) shift++;
	all = all < 0 ? -(-all >> shift << shift) : all >> shift << shift;
	return (float)(all * power(e - 25));
}

static void multiply(float c[4], const unsigned a[4], unsigned b0, unsigned b1) {
	int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	auto all = exchange([&](Fragment &f) {
		for (int i = 0; i < 4; i++) unpack(a[i], f.x[2 * i], f.x[2 * i + 1]);
		unpack(b0, f.x[8], f.x[9]);
		unpack(b1, f.x[10], f.x[11]);
	});
	for (int j = 0; j < 4; j++) {
		int row = g, column = 2 * t + (j & 1), lower = j / 2;
		for (int half = 0; half < 2; half++) {
			float terms[8];
			for (int k = 0; k < 8; k++) // exact: 22 bits
				terms[k] = all[row * 4 + k / 2][0].x[2 * (lower + 2 * half) + k % 2] * all[column * 4 + k / 2][0].x[8 + 2 * half + k % 2];
			c[j] = sum(c[j], terms);
		}
	}
}

static void multiply32(float c[4], const unsigned a[4], unsigned b0, unsigned b1) {
	int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	auto all = exchange([&](Fragment &f) { // of which tensor cores take 11 bits
		for (int i = 0; i < 4; i++) f.x[i] = __int_as_float(a[i] & 0xffffe000);
		f.x[4] = __int_as_float(b0 & 0xffffe000), f.x[5] = __int_as_float(b1 & 0xffffe000);
	});
	for (int j = 0; j < 4; j++) {
		int column = 2 * t + (j & 1), lower = j / 2;
		float terms[8];
		for (int k = 0; k < 8; k++) // exact: 22 bits
			terms[k] = all[g * 4 + k % 4][0].x[lower + k / 4 * 2] * all[column * 4 + k % 4][0].x[4 + k / 4];
		c[j] = sum(c[j], terms);
	}
}
